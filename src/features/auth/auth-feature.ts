/** Authentication: sessions, app passwords, service tokens. */
import type { Feature } from '../../http/feature.ts'
import { appPasswordRoutes } from './app-password-routes.ts'
import { expiredSessionsSweep } from './expired-sessions-sweep.ts'
import { serviceAuthRoutes } from './service-auth-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { sessionTokenKey } from './session-tokens.ts'

export const auth: Feature = {
  name: 'auth',
  capabilities: ['appPasswordPersonalDetails'],
  routes: [...sessionRoutes, ...appPasswordRoutes, ...serviceAuthRoutes],
  sweeps: [expiredSessionsSweep],
  async prepare(ctx) {
    await sessionTokenKey(ctx)
  },
}
