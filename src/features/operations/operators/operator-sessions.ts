/**
 * Sessions of accounts that operate this server. A session is opened with the account's own password, is short, and
 * ends when the role changes or access to the account ends. A browser's session is valid in that browser alone.
 */
import { createHash } from 'node:crypto'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, forbidden } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import {
  attemptLogin,
  loginRefused,
  MAX_TRIED_PASSWORD_CHARS,
  provePassword,
} from '../../identity/passwords/passwords.ts'
import { askedFactors, passFactor, usePasskey, type PasskeyUse } from '../../access/factors/factors.ts'
import { insertAudit } from './audit-store.ts'
import {
  findOperatorSession,
  insertOperatorSession,
  renewOperatorSession,
  roleOfSession,
  touchOperatorSession,
  type Alive,
} from './operator-session-store.ts'
import { findRole } from './role-store.ts'
import type { Role } from './roles.ts'

/** How long an entered password permits dangerous acts. */
const PROOF_MILLIS = 10 * MINUTE_MILLIS
/** The precision of the time of the last use. */
const TOUCH_MILLIS = MINUTE_MILLIS

/** An account that operates the server, authenticated by one of its sessions. */
export interface OperatorAccount {
  kind: 'account'
  did: Did
  role: Role
  sessionId: string
  tokenHash: string
  /** Whether the password was entered in the last minutes. */
  isProved: boolean
}

export const aliveBounds = ({ clock, config: { console: rules } }: Pick<Context, 'clock' | 'config'>): Alive => {
  const now = clock.now()
  return { openedAfter: now - rules.sessionSecs * 1000, usedAfter: now - rules.sessionIdleSecs * 1000 }
}

const browserHashOf = ({ request }: Exchange): string =>
  createHash('sha256')
    .update(request.headers.get('user-agent') ?? '')
    .digest('hex')

/** Whether a password that was entered then still permits dangerous acts. The clock may have been set back. */
const isFresh = (provedAt: Millis, now: Millis): boolean => Math.abs(now - provedAt) < PROOF_MILLIS

/**
 * Returns the operator whose session has this token, and notes its use; null if there is none. From then on, that
 * session revalidates the exchange.
 */
export async function sessionOperator(exchange: Exchange, token: string): Promise<OperatorAccount | null> {
  const { ctx } = exchange
  const tokenHash = opaqueTokenHash(token)
  if (tokenHash === null) return null
  const session = await findOperatorSession(ctx.db, tokenHash, aliveBounds(ctx))
  if (session === null) return null
  if (session.browserHash !== null && session.browserHash !== browserHashOf(exchange)) return null
  const now = ctx.clock.now()
  if (Math.abs(now - session.usedAt) >= TOUCH_MILLIS)
    await ctx.db.transaction((tx) => touchOperatorSession(tx, tokenHash, now))
  const { id: sessionId, did, role, provedAt } = session
  // A session that expires does not end a request that is running: a download may take hours.
  exchange.revalidate = async (reader) => {
    if ((await roleOfSession(reader, session)) !== role) throw authenticationRequired('This session has ended')
  }
  return { kind: 'account', did, role, sessionId, tokenHash, isProved: isFresh(provedAt, now) }
}

const notAnOperator = () => forbidden('This account is not an operator of this server')
const wrongPassword = () => authenticationRequired('The account or the password is wrong')

/** The account's own password, and the code of its second factor, if one was asked for. */
interface PasswordProof {
  password: string
  factorCode?: string
}

/** The browser's answer to the request for a passkey, as JSON. */
interface PasskeyProof {
  passkey: string
  /** What the browser has to have, as in the challenge. */
  binding: string
}

/** How operators prove who they are. The device of a passkey has verified them, so it needs nothing else. */
export type OperatorProof = PasswordProof | PasskeyProof

/** What the console requests a passkey for. `did`: null at the sign-in, where anyone's passkey will do. */
export const operatorUse = (did: Did | null, binding: string): PasskeyUse => ({ purpose: 'operate', did, binding })

type OperatorSignIn = { isBrowser: boolean } & ((PasswordProof & { identifier: string }) | PasskeyProof)

/**
 * Open a session, for a browser or for a program. Returns its token. Throws `AuthenticationRequired`, `Forbidden` if
 * the account has no role, or lacks the second factor that the configuration demands, `RateLimitExceeded` after too
 * many failures, and as `passFactor` and `usePasskey`.
 */
export async function openOperatorSession(
  exchange: Exchange,
  signIn: OperatorSignIn,
): Promise<{ token: string; did: Did; role: Role }> {
  const { ctx } = exchange
  const { isBrowser } = signIn
  const isPasskey = 'passkey' in signIn
  const { account, revalidate } = isPasskey
    ? await usePasskey(exchange, signIn.passkey, operatorUse(null, signIn.binding))
    : await provenAccount(exchange, signIn.identifier, signIn.password)
  const { did } = account
  if ((await findRole(ctx.db, did)) === null) throw notAnOperator()
  if (ctx.config.console.requiresFactor && (await askedFactors(ctx, account)) === null)
    throw forbidden('Operators need a second factor here: set one up on the page of your account')
  if (!isPasskey) await passFactor(exchange, account, signIn.factorCode)
  const { token, hash } = newToken()
  const role = await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const role = await findRole(tx, did)
    const current = await accountOf(tx, did)
    if (role === null || !current || statusOf(current) !== 'active') throw notAnOperator()
    const { openedAt, ...origin } = requestOrigin(exchange)
    const browserHash = isBrowser ? browserHashOf(exchange) : null
    const id = crypto.randomUUID()
    const times = { openedAt, usedAt: openedAt, provedAt: openedAt }
    await insertOperatorSession(tx, hash, { id, did, browserHash, ...times, ...origin })
    await insertAudit(tx, {
      actor: actorOfAccount(did),
      action: 'operator_signed_in',
      subject: did,
      outcome: 'ok',
      now: openedAt,
    })
    await announceSignIn(tx, exchange, did, isPasskey ? 'passkey' : isBrowser ? 'password on a page' : 'password')
    return role
  })
  return { token, did, role }
}

/**
 * Have the operator of a session prove again who they are, as at the sign-in. Returns the session's new token; the
 * former one is no longer valid. Throws as `openOperatorSession`.
 */
export async function proveAgain(exchange: Exchange, session: OperatorAccount, proof: OperatorProof): Promise<string> {
  const { ctx } = exchange
  const { revalidate } = await provenAgain(exchange, session.did, proof)
  const { token, hash } = newToken()
  await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    await exchange.revalidate(tx)
    if ((await renewOperatorSession(tx, session.tokenHash, hash, ctx.clock.now())) === 0)
      throw authenticationRequired('This session has ended')
  })
  return token
}

async function provenAgain(
  exchange: Exchange,
  did: Did,
  proof: OperatorProof,
): Promise<{ account: Account; revalidate: Revalidate }> {
  if ('passkey' in proof) return usePasskey(exchange, proof.passkey, operatorUse(did, proof.binding))
  const proven = await provenAccount(exchange, did, proof.password)
  await passFactor(exchange, proven.account, proof.factorCode)
  return proven
}

async function provenAccount(
  exchange: Exchange,
  identifier: string,
  password: string,
): Promise<{ account: Account; revalidate: Revalidate }> {
  if (password.length > MAX_TRIED_PASSWORD_CHARS) throw wrongPassword()
  const login = await attemptLogin(exchange, identifier.trim().replace(/^@/, ''), async (account) => {
    const revalidate = await provePassword(exchange.ctx, account, password, wrongPassword)
    return account && revalidate && { account, revalidate }
  })
  if (!login.ok) throw loginRefused(exchange, login.fault, wrongPassword())
  return login.value
}

const ACCOUNT_ACTOR = 'operator:'

/** The name of an account in the audit log. */
export const actorOfAccount = (did: Did): string => `${ACCOUNT_ACTOR}${did}`

/** Returns the account that a name in the audit log stands for; null for the admin token and for devices. */
export const accountOfActor = (actor: string): Did | null =>
  actor.startsWith(ACCOUNT_ACTOR) ? (actor.slice(ACCOUNT_ACTOR.length) as Did) : null
