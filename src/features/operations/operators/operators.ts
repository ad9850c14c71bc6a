/**
 * Operators: the holder of `admin_token`, or a paired device that signs each request. Every action of theirs is
 * recorded in the audit log, in the transaction that performs it.
 *
 * Every credential fault returns the same 401, except that a revoked device gets a 403, so that the companion app can
 * say so.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, forbidden } from '../../../http/errors.ts'
import { requireJson } from '../../../http/json-input.ts'
import { charge, refuseSpent } from '../../../http/limiting.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import { isSignedBy, requestText } from '../../../protocol/admin-request.ts'
import { insertAudit, type AuditAction } from './audit-store.ts'
import { findOperatorDevice, insertNonce, touchDevice } from './operator-device-store.ts'

export type { AuditAction } from './audit-store.ts'

export type Operator = { kind: 'master' } | { kind: 'device'; deviceId: string }

/** How far a device's clock may be off in either direction. Half the minimum time for which nonces are kept. */
const WINDOW_SECS = 60
const MAX_BODY_BYTES = 1024 ** 2
const noncePattern = /^[A-Za-z0-9_-]{1,128}$/

const kinds = { any: ['master', 'device'], master: ['master'], device: ['device'] } as const

/**
 * Guard for operators. Throws `AuthenticationRequired`, or `Forbidden` for a revoked device. A body that is not JSON is
 * refused first, so that this mistake does not use up a nonce, unless the endpoint takes other bytes.
 */
export function operator(accepts: keyof typeof kinds = 'any', { takesBytes = false } = {}): Guard<Operator> {
  return {
    personal: true,
    takes: ['operator'],
    async check(exchange) {
      if (!takesBytes && exchange.body.isAnnounced && exchange.body.announcedBytes !== 0) requireJson(exchange.body)
      const found = await operatorOf(exchange)
      if (found === null || !(kinds[accepts] as readonly string[]).includes(found.kind)) throw unauthorized()
      return found
    },
  }
}

/**
 * Returns the operator who sent the request, or null without valid credentials. A valid master token wins over device
 * headers.
 */
export async function operatorOf(exchange: Exchange): Promise<Operator | null> {
  const token = givenToken(exchange.request)
  const signs = exchange.request.headers.has('x-admin-device')
  if (token === null && !signs) return null
  return guess(exchange, async () => {
    if (token !== null && isMasterToken(exchange.ctx, token)) return { kind: 'master' }
    return signs ? signingDevice(exchange) : null
  })
}

/**
 * Check an operator credential. `check` returns null for a wrong guess. Each client address has a limited number of
 * wrong guesses; after that even a correct credential is refused with `RateLimitExceeded`, because success would
 * confirm it.
 */
export async function guess<Right>(exchange: Exchange, check: () => Promise<Right | null>): Promise<Right | null> {
  await refuseSpent(exchange, 'operatorGuess')
  const right = await check()
  if (right === null) {
    const { ctx, ip, client } = exchange
    guessLines(ctx).within(client.address, (omitted) => ctx.log.warn('operator credential refused', { ip, omitted }))
    charge(exchange, 'operatorGuess')
  }
  return right
}

const guessLines = perContext(({ clock }) => new LogRateLimiter(clock))

/** Whether there is a device with this id that has not been revoked. */
export const isDevicePaired = async (reader: Reader, deviceId: string): Promise<boolean> =>
  (await findOperatorDevice(reader, deviceId))?.revokedAt === null

/** Returns the operator's name in the audit log. */
export const actorOf = (who: Operator): string => (who.kind === 'master' ? 'master-token' : `device:${who.deviceId}`)

/** `subject` is the DID or id that the action affected; `detail` must contain no secrets. */
export interface OperatorAction {
  actor: string
  action: AuditAction
  subject?: string
  detail?: string
}

/**
 * Record an action. Call it in the transaction of the change, and only if something changed. It is logged once durable.
 */
export async function recordAudit(exchange: Exchange, tx: Tx, entry: OperatorAction): Promise<void> {
  await insertAudit(tx, { ...entry, outcome: 'ok', now: exchange.ctx.clock.now() })
  tx.afterCommit(() => logOperator(exchange, entry))
}

/** Log an operator action that the audit log does not record. `action` is named as there. */
export function logOperator(
  { ctx, requestId }: Exchange,
  { actor, action, subject }: Pick<OperatorAction, 'actor' | 'subject'> & { action: AuditAction | UnauditedAction },
): void {
  ctx.log.info('operator action', { requestId, actor, action, subject })
}

type UnauditedAction =
  | 'alert_test'
  | 'record_takedown'
  | 'record_restore'
  | 'blob_takedown'
  | 'blob_restore'
  | 'email_sent'
  | 'invites_disabled'
  | 'invites_enabled'
  | 'sweep_run'
  | 'push_tested'

export const unauthorized = () => authenticationRequired('Operator credentials are missing or wrong')

function isMasterToken({ config }: Context, given: string): boolean {
  const token = config.adminToken?.reveal()
  return token !== undefined && timingSafeEqual(digest(given), digest(token))
}

/**
 * Returns the token that the request presents: a bearer token, or the Basic password of `admin`, as standard tools send
 * it. Null if neither.
 */
function givenToken({ headers }: Request): string | null {
  const [scheme = '', value = ''] = (headers.get('authorization') ?? '').split(' ')
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() !== 'basic') return null
  const pair = Buffer.from(value, 'base64').toString()
  return pair.startsWith('admin:') ? pair.slice('admin:'.length) : null
}

const digest = (text: string) => createHash('sha256').update(text).digest()

async function signingDevice({ ctx, request, rawPath, body }: Exchange): Promise<Operator | null> {
  const { headers } = request
  const deviceId = headers.get('x-admin-device')!
  const timestamp = headers.get('x-admin-timestamp') ?? ''
  const nonce = headers.get('x-admin-nonce') ?? ''
  const signature = headers.get('x-admin-signature') ?? ''
  if (!/^\d{1,12}$/.test(timestamp) || !noncePattern.test(nonce)) return null

  const device = await findOperatorDevice(ctx.db, deviceId)
  if (device === null) return null
  if (device.revokedAt !== null) throw forbidden('This device has been revoked')
  const now = ctx.clock.now()
  if (Math.abs(Math.floor(now / 1000) - Number(timestamp)) > WINDOW_SECS) return null
  const text = requestText({
    method: request.method,
    path: rawPath,
    timestamp,
    nonce,
    body: await body.bytes(MAX_BODY_BYTES),
  })
  if (!isSignedBy(device.publicKey, text, signature)) return null

  // After the signature, so that unsigned traffic fills no table; before the handler, so that it runs once.
  const fresh = await ctx.db.transaction(async (tx) => {
    if (!(await insertNonce(tx, { deviceId, nonce, now }))) return false
    await touchDevice(tx, deviceId, now)
    return true
  })
  return fresh ? { kind: 'device', deviceId } : null
}
