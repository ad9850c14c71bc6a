/** Endpoints for keys that the server generates: the key that will sign a new repository, and the keys of operators. */
import { Type } from '@sinclair/typebox'
import { anyone, route } from '../../../http/endpoint.ts'
import { authenticationRequired, serviceUnavailable } from '../../../http/errors.ts'
import { underMasterKey } from '../../../http/master-key-guard.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Context } from '../../../platform/context.ts'
import { formatBareMultibase, parseDidKey } from '../../../protocol/keys.ts'
import { makeAccountKey } from '../account-keys/account-keys.ts'
import { pending } from './pending-credential.ts'
import { actorOf, operator, recordAudit } from '../../operations/operators/operators.ts'
import { findCeremony, insertCeremonyKey, type Ceremony } from './ceremony-store.ts'
import { insertOperatorKey, newestOperatorKey } from './operator-key-store.ts'

const keyView = (didKey: string) => ({
  keyId: didKey,
  publicKey: formatBareMultibase(parseDidKey(didKey)!),
  algorithm: 'p256',
})

/** Returns the key of a ceremony as a did:key. It stays the same, because an identity may name it already. */
async function issueKey(ctx: Context, { id, key }: Ceremony): Promise<string | null> {
  if (key !== null) return key.signingKey
  const made = makeAccountKey(ctx, 'p256')
  return ctx.db.transaction(async (tx) => {
    await insertCeremonyKey(tx, id, made)
    return (await findCeremony(tx, id))?.key?.signingKey ?? null
  })
}

export const issuedKeyRoutes = [
  route('GET', '/v1/repo-signing-key', {
    auth: underMasterKey(pending),
    async handler({ ctx, caller: { ceremony } }) {
      const signingKey = await issueKey(ctx, ceremony)
      // The ceremony became an account during this request.
      if (signingKey === null) throw authenticationRequired('The session has ended')
      return keyView(signingKey)
    },
  }),

  route('POST', '/v1/pds/keys', {
    auth: underMasterKey(operator()),
    async handler(call) {
      const { ctx, caller, body } = call
      await readJson(body, Type.Object({ algorithm: Type.Literal('p256') }))
      const made = makeAccountKey(ctx, 'p256')
      await ctx.db.transaction(async (tx) => {
        await insertOperatorKey(tx, made, ctx.clock.now())
        await recordAudit(call, tx, { actor: actorOf(caller), action: 'signing_key_created', subject: made.signingKey })
      })
      return keyView(made.signingKey)
    },
  }),

  route('GET', '/v1/pds/keys', {
    auth: underMasterKey(anyone),
    async handler({ ctx }) {
      const signingKey = await newestOperatorKey(ctx.db)
      if (signingKey === null) throw serviceUnavailable('The operator has not created a key')
      return keyView(signingKey)
    },
  }),
]
