/** Endpoints for sender keys: devices fetch the keys, and operators replace them. */
import { route, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, methodNotImplemented, notFound, Refusal, serviceUnavailable } from '../../../http/errors.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { accountItself } from '../../access/auth/auth.ts'
import {
  actorOf,
  operator,
  recordAudit,
  type AuditAction,
  type Operator,
} from '../../operations/operators/operators.ts'
import { countPublishedSenderKeys, findSenderKey, revokeSenderKey, type SenderKeyRow } from './sender-key-store.ts'
import {
  knownSenderKeys,
  publishedSenderKeys,
  rotateSenderKey,
  type KnownSenderKey,
  type PublishedSenderKey,
} from './sender-keys.ts'

/** Most published keys. Devices fetch all of them at every contact. */
const MAX_PUBLISHED = 32

const conflict = (message: string) => new Refusal(409, 'Conflict', message)

/** Throws `MethodNotImplemented` without a relay, and `ServiceUnavailable` without a configured master key. */
function requirePushes(ctx: Context): void {
  if (ctx.config.notifications.relay === null) throw methodNotImplemented()
  requireMasterKey(ctx)
}

/** Never returns an empty list: a device that knows no key could verify nothing. */
async function published(ctx: Context): Promise<{ keys: PublishedSenderKey[] }> {
  requirePushes(ctx)
  const keys = await publishedSenderKeys(ctx)
  if (keys.length === 0) throw serviceUnavailable('No sender key can be decrypted')
  return { keys }
}

const keyView = ({ kid, state, publicKey, createdAt, changedAt }: KnownSenderKey) => ({
  kid,
  state,
  publicKey: publicKey ?? undefined,
  createdAt: wireTime(createdAt),
  changedAt: wireTime(changedAt),
})

const allKeys = async (ctx: Context) => ({ keys: (await knownSenderKeys(ctx)).map(keyView) })

interface KeyCall extends Exchange {
  caller: Operator
  path: Record<string, string>
}

/** Returns the key that the path names. Throws `InvalidRequest` if the name is not a number, and `NotFound`. */
async function keyNamed({ path: { kid = '' } }: KeyCall, reader: Reader): Promise<SenderKeyRow> {
  if (!/^[1-9]\d{0,9}$/.test(kid)) throw invalidRequest('The number of a key is required')
  const key = await findSenderKey(reader, Number(kid))
  if (key === null) throw notFound('There is no sender key with this number')
  return key
}

const auditOf = ({ caller }: KeyCall, action: AuditAction, kid: number) => ({
  actor: actorOf(caller),
  action,
  subject: String(kid),
})

export const senderKeyRoutes = [
  route('GET', '/v1/notifications/sender-keys', { auth: accountItself, handler: ({ ctx }) => published(ctx) }),

  route('GET', '/v1/admin/notifications/sender-keys', { auth: operator(), handler: ({ ctx }) => published(ctx) }),

  route('GET', '/v1/admin/notifications/sender-keys/all', { auth: operator(), handler: ({ ctx }) => allKeys(ctx) }),

  route('POST', '/v1/admin/notifications/sender-keys/rotate', {
    auth: operator(),
    async handler(call) {
      const { ctx } = call
      requirePushes(ctx)
      await ctx.db.transaction(async (tx) => {
        if ((await countPublishedSenderKeys(tx)) >= MAX_PUBLISHED)
          throw conflict(`${MAX_PUBLISHED} keys are published: revoke retired ones first`)
        const kid = await rotateSenderKey(ctx, tx)
        await recordAudit(call, tx, auditOf(call, 'sender_key_rotated', kid))
      })
      return allKeys(ctx)
    },
  }),

  route('POST', '/v1/admin/notifications/sender-keys/:kid/retire', {
    auth: operator(),
    // A rotation retires the active key, so there is never a second one. The response only says that it is done, or why
    // not.
    async handler(call) {
      const { ctx } = call
      const { kid, state } = await keyNamed(call, ctx.db)
      if (state === 'active')
        throw conflict(`Key ${kid} is the only one that seals pushes: rotate the keys, which retires it`)
      if (state === 'revoked') throw conflict(`Key ${kid} is revoked`)
      return allKeys(ctx)
    },
  }),

  route('POST', '/v1/admin/notifications/sender-keys/:kid/revoke', {
    auth: operator(),
    async handler(call) {
      const { ctx } = call
      await ctx.db.transaction(async (tx) => {
        const { kid } = await keyNamed(call, tx)
        if ((await revokeSenderKey(tx, kid, ctx.clock.now())) > 0)
          await recordAudit(call, tx, auditOf(call, 'sender_key_revoked', kid))
      })
      return allKeys(ctx)
    },
  }),
]
