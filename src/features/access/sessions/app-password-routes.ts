/**
 * com.atproto.server.createAppPassword, listAppPasswords and revokeAppPassword: for full sessions of the account only.
 */
import { procedure, query } from '../../../http/endpoint.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { listAppPasswords, type AppPassword } from './app-password-store.ts'
import { createAppPassword, revokeAppPassword } from './app-passwords.ts'
import { fullAccess } from '../auth/auth.ts'

const appPasswordView = ({ name, createdAt, privileged, personalDetails }: AppPassword) => ({
  name,
  createdAt: wireTime(createdAt),
  privileged,
  personalDetails,
})

export const appPasswordRoutes = [
  procedure('com.atproto.server.createAppPassword', {
    auth: fullAccess({ refusesTakendown: true }),
    async handler(call) {
      const { name, privileged = false, personalDetails = false } = call.input
      const wanted = { name, privileged, personalDetails, scope: null, expiresAt: null }
      const made = await createAppPassword(call, call.caller.did, wanted)
      return { ...appPasswordView(made), password: made.password }
    },
  }),
  query('com.atproto.server.listAppPasswords', {
    auth: fullAccess(),
    handler: async ({ ctx, caller }) => ({
      passwords: (await listAppPasswords(ctx.db, caller.did)).map(appPasswordView),
    }),
  }),
  procedure('com.atproto.server.revokeAppPassword', {
    auth: fullAccess(),
    async handler(call) {
      await revokeAppPassword(call, call.caller.did, call.input.name)
    },
  }),
]
