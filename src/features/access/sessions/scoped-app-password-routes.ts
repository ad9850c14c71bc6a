/**
 * App passwords with scopes and an end, for owners of accounts. These routes also list and revoke app passwords that
 * clients create with `com.atproto.server.createAppPassword`, and the methods of `com.atproto.server` those that are
 * created here.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { owner } from '../auth/auth.ts'
import { termMembers, termsIn } from './access-terms.ts'
import { listAppPasswords, type AppPassword } from './app-password-store.ts'
import { createScopedAppPassword, revokeAppPassword } from './app-passwords.ts'

const view = ({ name, privileged, personalDetails, scope, expiresAt, createdAt, lastUsedAt }: AppPassword) => ({
  name,
  ...(scope === null ? { privileged, personalDetails } : { scope }),
  createdAt: wireTime(createdAt),
  expiresAt: wireTimeOrNull(expiresAt) ?? undefined,
  lastUsedAt: wireTimeOrNull(lastUsedAt) ?? undefined,
})

export const scopedAppPasswordRoutes = [
  route('GET', '/v1/app-passwords', {
    auth: owner,
    handler: async ({ ctx, caller }) => ({ appPasswords: (await listAppPasswords(ctx.db, caller.did)).map(view) }),
  }),

  route('POST', '/v1/app-passwords', {
    auth: owner,
    async handler(call) {
      const { name, ...given } = await readJson(call.body, Type.Object({ name: Type.String(), ...termMembers }))
      const made = await createScopedAppPassword(call, call.caller.did, name, termsIn(given))
      return { ...view(made), password: made.password }
    },
  }),

  route('POST', '/v1/app-passwords/revoke', {
    auth: owner,
    async handler(call) {
      const { name } = await readJson(call.body, Type.Object({ name: Type.String() }))
      if (!(await revokeAppPassword(call, call.caller.did, name))) throw notFound('No such app password')
      return { name, status: 'revoked' }
    },
  }),
]
