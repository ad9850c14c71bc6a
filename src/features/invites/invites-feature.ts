import type { Feature } from '../../http/feature.ts'
import { inviteRoutes } from './invite-routes.ts'

export const invites: Feature = { name: 'invites', routes: inviteRoutes }
