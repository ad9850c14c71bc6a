/**
 * App passwords with scopes and an end, for owners of accounts. These routes also list and revoke app passwords that
 * clients create with `com.atproto.server.createAppPassword`, and the methods of `com.atproto.server` those that are
 * created here.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { parseDatetime, wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { scopePresets } from '../../../protocol/app-password-scopes.ts'
import { owner } from '../auth/auth.ts'
import { listAppPasswords, type AppPassword } from './app-password-store.ts'
import { createScopedAppPassword, revokeAppPassword } from './app-passwords.ts'

const view = ({ name, privileged, personalDetails, scope, expiresAt, createdAt, lastUsedAt }: AppPassword) => ({
  name,
  ...(scope === null ? { privileged, personalDetails } : { scope }),
  createdAt: wireTime(createdAt),
  expiresAt: wireTimeOrNull(expiresAt) ?? undefined,
  lastUsedAt: wireTimeOrNull(lastUsedAt) ?? undefined,
})

/** Throws `InvalidRequest` if the text is no datetime. */
function instantOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const instant = parseDatetime(text)
  if (instant === null) throw invalidRequest('expiresAt must be a datetime, such as 2030-01-31T12:00:00.000Z')
  return instant
}

export const scopedAppPasswordRoutes = [
  route('GET', '/v1/app-passwords', {
    auth: owner,
    handler: async ({ ctx, caller }) => ({ appPasswords: (await listAppPasswords(ctx.db, caller.did)).map(view) }),
  }),

  route('POST', '/v1/app-passwords', {
    auth: owner,
    async handler(call) {
      const {
        name,
        scope = '',
        presets = [],
        expiresAt,
      } = await readJson(
        call.body,
        Type.Object({
          name: Type.String(),
          scope: Type.Optional(Type.String()),
          presets: Type.Optional(Type.Array(Type.String(), { maxItems: Object.keys(scopePresets).length })),
          expiresAt: Type.Optional(Type.String()),
        }),
      )
      const wanted = { name, scope, presets, expiresAt: instantOf(expiresAt) }
      const made = await createScopedAppPassword(call, call.caller.did, wanted)
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
