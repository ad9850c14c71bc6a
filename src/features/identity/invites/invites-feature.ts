import type { Feature } from '../../../http/feature.ts'
import { forgetInvites } from './invite-store.ts'
import { inviteRoutes } from './invite-routes.ts'

export const invites: Feature = {
  name: 'invites',
  routes: inviteRoutes,
  forgetAccount: (_, tx, did) => forgetInvites(tx, did),
}
