/**
 * Operators: the holder of `admin_token`, a paired device that signs each request, or an account with a role and a
 * session of its own. Every action is recorded in the audit log, in the transaction that performs it.
 *
 * Every credential fault returns the same 401, except that a revoked device gets a 403, so that the companion app can
 * say so.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, forbidden, invalidRequest, Refusal } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import { requireJson } from '../../../http/json-input.ts'
import { charge, refuseSpent } from '../../../http/limiting.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import { isSignedBy, requestText } from '../../../protocol/admin-request.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import type { Operated } from '../../identity/account-events/account-events.ts'
import { insertAudit, type AuditAction } from './audit-store.ts'
import { findOperatorDevice, insertNonce, touchDevice } from './operator-device-store.ts'
import { accountOfActor, actorOfAccount, sessionOperator, type OperatorAccount } from './operator-sessions.ts'
import { findRole, hasOtherOwner } from './role-store.ts'
import { mayRole, ruleOf, standsAbove, type Act } from './roles.ts'

export type { AuditAction } from './audit-store.ts'
export {
  openOperatorSession,
  operatorUse,
  proveAgain,
  sessionOperator,
  type OperatorAccount,
} from './operator-sessions.ts'
export { namedAccount } from './named-account.ts'
export { mayRole, roles, type Act } from './roles.ts'

export type Operator = { kind: 'master' } | { kind: 'device'; deviceId: string } | OperatorAccount

/** How far a device's clock may be off in either direction. Half the minimum time for which nonces are kept. */
const WINDOW_SECS = 60
const MAX_BODY_BYTES = 1024 ** 2
const noncePattern = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Guard for operators who may perform an act. Throws `AuthenticationRequired`, `Forbidden` for a revoked device or for
 * a role that does not permit the act, or `PasswordRequired`. Unless the endpoint takes other bytes, a body that is not
 * JSON is refused first, so that this mistake does not use up a nonce.
 */
export function operator(act: Act = 'operate', { takesBytes = false } = {}): Guard<Operator> {
  return {
    personal: true,
    takes: ['operator'],
    async check(exchange) {
      if (!takesBytes && exchange.body.isAnnounced && exchange.body.announcedBytes !== 0) requireJson(exchange.body)
      const found = await operatorOf(exchange)
      if (found === null || (act === 'master' && found.kind === 'device')) throw unauthorized()
      requireMay(found, act)
      requireReadableReason(exchange)
      return found
    },
  }
}

/**
 * Throws `InvalidRequest` if the reason for the audit log cannot be read. Guards call it first, so that nothing is done
 * that cannot be recorded.
 */
export const requireReadableReason = (exchange: Exchange): void => void reasonOf(exchange)

/** Throws `Forbidden` if the operator's role does not permit the act, and `PasswordRequired` if it is dangerous. */
export function requireMay(who: Operator, act: Act): void {
  if (who.kind !== 'account') return
  if (!mayRole(who.role, act)) throw forbidden(`The role "${who.role}" does not permit this`)
  if (ruleOf(act).isDangerous && !who.isProved)
    throw new Refusal(
      403,
      'PasswordRequired',
      'Enter your password again: this act requires that it was entered recently',
    )
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
    const account = token === null ? null : await sessionOperator(exchange, token)
    if (account !== null) return account
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
    await charge(exchange, 'operatorGuess')
  }
  return right
}

const guessLines = perContext(({ clock }) => new LogRateLimiter(clock))

/** Whether there is a device with this id that has not been revoked. */
export const isDevicePaired = async (reader: Reader, deviceId: string): Promise<boolean> =>
  (await findOperatorDevice(reader, deviceId))?.revokedAt === null

/** Returns the operator's name in the audit log. */
export function actorOf(who: Operator): string {
  if (who.kind === 'account') return actorOfAccount(who.did)
  return who.kind === 'master' ? 'master-token' : `device:${who.deviceId}`
}

/** `subject` is the DID or id that the action affects; `detail` must contain no secrets. */
export interface OperatorAction {
  actor: string
  action: AuditAction
  subject?: string
  /** The account that the action is about, if `subject` is not its DID. */
  account?: Did
  detail?: string
  /** Why, if the header `X-Admin-Reason` does not say so. */
  reason?: string
  /** `requireStanding` was called earlier in the transaction: the change may have ended the operator's own access. */
  isDone?: true
}

/**
 * Record an action. Call it in the transaction of the change, and only if something changed. It is logged once durable.
 * Throws as `requireStanding`, which undoes the change.
 */
export async function recordAudit(exchange: Exchange, tx: Tx, entry: OperatorAction): Promise<void> {
  if (entry.isDone !== true) await requireStanding(exchange, tx, entry)
  const { actor, action, subject, detail } = entry
  const reason = reasonOf(exchange) ?? (entry.reason === undefined ? null : plainReason(entry.reason))
  await insertAudit(tx, { actor, action, subject, detail, reason, outcome: 'ok', now: exchange.ctx.clock.now() })
  tx.afterCommit(() => logOperator(exchange, entry))
}

/** Record an action in the transaction of another feature that performs it. */
export const operatedBy = (exchange: Exchange, entry: OperatorAction): Operated => ({
  actor: entry.actor,
  record: (tx) => recordAudit(exchange, tx, entry),
})

/** Acts against an owner's account that are possible only while there is another owner. */
const endsOwners: ReadonlySet<AuditAction> = new Set([
  'account_takedown',
  'account_deactivated',
  'account_deleted',
  'operator_role_set',
  'operator_role_removed',
])

/** Acts that give something to an account, and take nothing from it. */
const harmless: ReadonlySet<AuditAction> = new Set(['claim_codes_minted', 'email_sent'])

/**
 * Throws `AuthenticationRequired` or `Forbidden` if the operator's session has ended, or the device was revoked, since
 * the request was admitted. Also throws `Forbidden` if the operator's account does not rank above the account that the
 * action is about, or if the action would end the last owner.
 */
export async function requireStanding(
  exchange: Exchange,
  tx: Tx,
  { actor, action, subject, account }: OperatorAction,
): Promise<void> {
  await exchange.revalidate(tx)
  const by = accountOfActor(actor)
  if (by === null) return
  const about = account ?? parseDid(subject ?? '')
  const other = about && (await findRole(tx, about))
  if (!about || !other || harmless.has(action)) return
  const own = await findRole(tx, by)
  if (own === null || !standsAbove(own, other))
    throw forbidden(`Only a higher role may act on an account that is "${other}"`)
  if (other === 'owner' && endsOwners.has(action) && !(await hasOtherOwner(tx, about)))
    throw forbidden('This is the last owner: only the admin token can do this')
}

const MAX_REASON_CHARS = 500

/** Returns a reason as the audit log keeps it; null if it has no visible characters. */
export const plainReason = (given: string): string | null => plainName(given, MAX_REASON_CHARS) || null

/** Why the operator acts, from the header `X-Admin-Reason`, in percent-encoded UTF-8. Null if it is missing. */
function reasonOf({ request }: Exchange): string | null {
  const given = request.headers.get('x-admin-reason')
  if (given === null) return null
  const text = decodedReason(given)
  if (text === null) throw invalidRequest('X-Admin-Reason is not percent-encoded UTF-8')
  return plainReason(text)
}

function decodedReason(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return null
    throw error
  }
}

/** Log an operator action that the audit log does not record. `action` is named as there. */
export function logOperator(
  { ctx, requestId }: Exchange,
  { actor, action, subject }: Pick<OperatorAction, 'actor' | 'subject'> & { action: AuditAction | UnauditedAction },
): void {
  ctx.log.info('operator action', { requestId, actor, action, subject })
}

type UnauditedAction = 'alert_test' | 'push_tested'

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

const deviceRevoked = () => forbidden('This device has been revoked')

async function signingDevice(exchange: Exchange): Promise<Operator | null> {
  const { ctx, request, rawPath, body } = exchange
  const { headers } = request
  const deviceId = headers.get('x-admin-device')!
  const timestamp = headers.get('x-admin-timestamp') ?? ''
  const nonce = headers.get('x-admin-nonce') ?? ''
  const signature = headers.get('x-admin-signature') ?? ''
  if (!/^\d{1,12}$/.test(timestamp) || !noncePattern.test(nonce)) return null

  const device = await findOperatorDevice(ctx.db, deviceId)
  if (device === null) return null
  if (device.revokedAt !== null) throw deviceRevoked()
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

  exchange.revalidate = async (reader) => {
    if (!(await isDevicePaired(reader, deviceId))) throw deviceRevoked()
  }
  // After the signature, so that unsigned traffic fills no table; before the handler, so that it runs once.
  const fresh = await ctx.db.transaction(async (tx) => {
    if (!(await insertNonce(tx, { deviceId, nonce, now }))) return false
    // The device may have been revoked while the body arrived.
    if ((await touchDevice(tx, deviceId, now)) === 0) throw deviceRevoked()
    return true
  })
  return fresh ? { kind: 'device', deviceId } : null
}
