/** Who is who: sessions, app passwords, service tokens. */
import type { Feature } from '../../http/feature.ts'
import type { Sweep } from '../../platform/running/sweeps.ts'
import { appPasswordRoutes } from './app-password-routes.ts'
import { serviceAuthRoutes } from './service-auth-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { deleteExpiredSessions } from './session-store.ts'
import { sessionTokenKey } from './session-tokens.ts'

const expiredSessionsSweep: Sweep = {
  name: 'expired-sessions',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteExpiredSessions(db, clock.now()) }),
}

export const auth: Feature = {
  name: 'auth',
  capabilities: ['appPasswordPersonalDetails'],
  routes: [...sessionRoutes, ...appPasswordRoutes, ...serviceAuthRoutes],
  sweeps: [expiredSessionsSweep],
  async prepare(ctx) {
    await sessionTokenKey(ctx)
  },
}
