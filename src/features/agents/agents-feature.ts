/** Programs that act for an account: how they register, how people confirm them, and what ends them. */
import type { Feature } from '../../http/feature.ts'
import { agentAdminRoutes } from './agent-admin-routes.ts'
import { agentClaimPageRoutes } from './agent-claim-page-routes.ts'
import { agentClaimSweep } from './agent-claim-sweep.ts'
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
  sweeps: [agentClaimSweep],
}
