/** Authentication: sessions, app passwords, proofs of wallets, service tokens. */
import type { Feature } from '../../http/feature.ts'
import { appPasswordRoutes } from './app-password-routes.ts'
import { expiredSessionsSweep } from './expired-sessions-sweep.ts'
import { serviceAuthRoutes } from './service-auth-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { sessionTokenKey } from './session-tokens.ts'
import { sovereignSessionRoutes } from './sovereign-session-routes.ts'

export const auth: Feature = {
  name: 'auth',
  capabilities: ['appPasswordPersonalDetails', 'sovereignSessions'],
  routes: [...sessionRoutes, ...sovereignSessionRoutes, ...appPasswordRoutes, ...serviceAuthRoutes],
  sweeps: [expiredSessionsSweep],
  async prepare(ctx) {
    await sessionTokenKey(ctx)
  },
}
