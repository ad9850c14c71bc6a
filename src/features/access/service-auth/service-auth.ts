/**
 * The door of service tokens: tokens with which other services act here, and tokens with which clients call other
 * services.
 */
import type { Feature } from '../../../http/feature.ts'
import { serviceAuthRoutes } from './service-auth-routes.ts'
import { accountServiceCredential, moderationCredential, serviceCredential } from './service-credentials.ts'

export { verifyServiceToken } from './service-tokens.ts'

export const serviceAuth: Feature = {
  name: 'service-auth',
  routes: serviceAuthRoutes,
  credentials: [serviceCredential, moderationCredential, accountServiceCredential],
}
