/** Programs that act for an account: how they register, how people confirm them, and what ends them. */
import type { Feature } from '../../../http/feature.ts'
import { endAgentsOf } from './agent-owners.ts'
import { deleteShownClaimsOf } from './agent-claim-page-store.ts'
import { deleteAgentsOf } from './agent-registration-store.ts'
import { agentAdminRoutes } from './agent-admin-routes.ts'
import { agentCredential } from './agent-credential.ts'
import { agentClaimPageRoutes } from './agent-claim-page-routes.ts'
import { agentGrants } from './agent-grants.ts'
import { agentClaimSweep } from './agent-claim-sweep.ts'
import { agentEventSweep } from './agent-event-sweep.ts'
import { agentIdentityRoutes } from './agent-identity-routes.ts'
import { agentOwnerRoutes } from './agent-owner-routes.ts'
import { agentSkillRoutes } from './agent-skill-routes.ts'
import { providerEventRoutes } from './provider-event-routes.ts'

export const agents: Feature = {
  name: 'agents',
  routes: [
    ...agentIdentityRoutes,
    ...agentClaimPageRoutes,
    ...agentOwnerRoutes,
    ...agentAdminRoutes,
    ...agentSkillRoutes,
    ...providerEventRoutes,
  ],
  capabilities: ['agents'],
  sweeps: [agentClaimSweep, agentEventSweep],
  credentials: [agentCredential],
  grants: agentGrants,
  async forgetAccount(_, tx, did) {
    await deleteAgentsOf(tx, did)
  },
  async endAccess({ clock }, tx, did, why) {
    await deleteShownClaimsOf(tx, did)
    if (why === 'reset_password') await endAgentsOf(tx, did, clock.now(), 'password_reset')
    if (why === 'revoked') return { agentRegistrations: await endAgentsOf(tx, did, clock.now(), 'operator') }
  },
}
