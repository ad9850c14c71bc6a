/** Shared accounts: other accounts act for one, within scopes that its holder chose. */
import type { Feature } from '../../../http/feature.ts'
import { delegationAdminRoutes } from './delegation-admin-routes.ts'
import { endDelegationsOf, forgetDelegationsOf } from './delegation-changes.ts'
import { delegationRoutes } from './delegation-routes.ts'

export const delegations: Feature = {
  name: 'delegations',
  routes: [...delegationRoutes, ...delegationAdminRoutes],
  forgetAccount: forgetDelegationsOf,
  async endAccess(ctx, tx, did, why) {
    // An intruder who was signed in may have invited accomplices. A new password changes nothing, as with apps.
    if (why === 'reset_password') await endDelegationsOf(ctx, tx, did, 'password_reset')
    if (why === 'revoked') return { delegations: await endDelegationsOf(ctx, tx, did, 'operator') }
  },
}
