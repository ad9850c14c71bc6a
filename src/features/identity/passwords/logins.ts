/** Password attempts: sessions and OAuth consent both use this module, and so share its count of failures. */
import type { Exchange } from '../../../http/endpoint.ts'
import type { Refusal } from '../../../http/errors.ts'
import { limitRefusal } from '../../../http/limit-headers.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { networkOf } from '../../../protocol/ip-address.ts'
import { isKnownNetwork } from '../account-events/account-events.ts'
import { accountNamed, type Account } from '../accounts/accounts.ts'
import { LoginAttempts, MAX_FAILURES, type Blocked } from './login-attempts.ts'
import { findPasswordHash, replacePasswordHash } from './password-store.ts'
import { hashPassword, isForeignHash, verifyPassword } from './password-hashing.ts'
import { enterShared, type SharedAttempt } from './shared-attempts.ts'
import { WINDOW_MILLIS } from './sign-in-attempt-store.ts'

const failureLimit = { limit: MAX_FAILURES, windowSecs: WINDOW_MILLIS / 1000 }

/**
 * The length of the longest DID. No account has a longer identifier, so identifiers are cut here before they are
 * counted.
 */
const MAX_IDENTIFIER_CHARS = 2048

const loginAttempts = perContext(({ clock }) => new LoginAttempts(clock))

interface Attempting {
  /**
   * Whether a browser session of the account asks, by DID. Its failures are counted separately: otherwise a stranger
   * who knows the DID could keep the signed-in holder from everything that requires the password.
   */
  isSignedIn?: boolean
}

type LoginFault = 'wrong' | 'blocked'
type LoginOutcome<T> = { ok: true; value: T } | { ok: false; fault: LoginFault }

/** Checks the password of an account, or does the same work for null. Returns null for a wrong password. */
type Attempt<T> = (account: Account | null) => Promise<T | null>

/**
 * Let `attempt` check the password. It receives the account with that handle, DID or email address, or null if there is
 * none. A success clears the failures.
 */
export async function attemptLogin<T>(
  exchange: Exchange,
  identifier: string,
  attempt: Attempt<T>,
  { isSignedIn = false }: Attempting = {},
): Promise<LoginOutcome<T>> {
  const { ctx } = exchange
  const name = identifier.trim().toLowerCase().slice(0, MAX_IDENTIFIER_CHARS)
  // In capitals, so that no identifier that a stranger enters, which is in lower case, shares this count.
  const counted = isSignedIn ? `SIGNED IN ${name}` : name
  let account: Account | null = null
  const tried = await attemptCounted(exchange, counted, async () => {
    account = await accountNamed(ctx.db, name)
    return attempt(account)
  })
  if ('byOthers' in tried) {
    const value = tried.byOthers && !isSignedIn ? await attemptWhileBlocked(exchange, name, attempt) : null
    if (value !== null) return { ok: true, value }
    noteFailedSignIn(exchange, 'too many failures', null)
    return { ok: false, fault: 'blocked' }
  }
  if (tried.value !== null) return { ok: true, value: tried.value }
  noteFailedSignIn(exchange, account === null ? 'no such account' : 'wrong password', account)
  return { ok: false, fault: 'wrong' }
}

/**
 * Lets in a holder whom failures from other networks lock out: from each network in which the account was used before,
 * the right password still opens it. Each network has its own count here, so only guesses from a known network have a
 * chance. A wrong password from a known network is refused in the same way, and after the same work, as any attempt
 * from an unknown network: otherwise people could learn whether an account is used in their own network. Returns null
 * if refused.
 */
async function attemptWhileBlocked<T>(exchange: Exchange, name: string, attempt: Attempt<T>): Promise<T | null> {
  const { db } = exchange.ctx
  const network = callerNetwork(exchange)
  const tried = await attemptCounted(exchange, `WHILE BLOCKED, FROM ${network} ${name}`, async () => {
    const account = await accountNamed(db, name)
    const isKnown = account !== null && network !== '' && (await isKnownNetwork(db, account.did, network))
    return attempt(isKnown ? account : null)
  })
  return 'value' in tried ? tried.value : null
}

/** Empty if unknown. */
const callerNetwork = ({ ip }: Exchange): string => networkOf(ip) ?? ''

/** Run one more attempt with a name, unless too many have failed on any node. */
async function attemptCounted<T>(
  exchange: Exchange,
  name: string,
  attempt: () => Promise<T | null>,
): Promise<{ value: T | null } | Blocked> {
  const { ctx } = exchange
  const network = callerNetwork(exchange)
  const attempts = loginAttempts(ctx)
  const entered = await attempts.enter(name, network)
  if ('byOthers' in entered) return entered
  let failed: boolean | null = null
  let shared: SharedAttempt | null = null
  try {
    if (ctx.db.cluster !== null) {
      const { nameHash } = entered
      const enteredAll = await enterShared(ctx, { nameHash, network }, MAX_FAILURES)
      if ('byOthers' in enteredAll) return enteredAll
      shared = enteredAll
    }
    const value = await attempt()
    failed = value === null
    return { value }
  } finally {
    attempts.leave(entered, failed, network)
    await shared?.leave(failed)
  }
}

const failureLines = perContext(({ clock }) => new LogRateLimiter(clock))

/** Logs the DID of the named account, if any, but never what was typed. */
export function noteFailedSignIn({ ctx, ip, client }: Exchange, reason: string, account: Account | null): void {
  failureLines(ctx).within(client.address, (omitted) =>
    ctx.log.info('sign-in failed', { reason, did: account?.did, ip, omitted }),
  )
}

/**
 * Returns null unless this is the account's own password; the work is the same without an account or a password. For
 * the right password, returns a function to call in the transaction that acts on the password, which throws `wrong` if
 * the password was replaced meanwhile: hashing takes time, and a replaced password must not sign in.
 */
export async function provePassword(
  ctx: Context,
  account: Account | null,
  password: string,
  wrong: () => Refusal,
): Promise<Revalidate | null> {
  const hash = account && (await findPasswordHash(ctx.db, account.did))
  const isRight = await verifyPassword(ctx, password, hash)
  if (!account || !isRight) return null
  const kept = isForeignHash(hash) ? await renewHash(ctx, account.did, password, hash) : hash
  return async (reader) => {
    if ((await findPasswordHash(reader, account.did)) !== kept) throw wrong()
  }
}

/**
 * Replace a hash that another server made with one of our own, unless the password was changed meanwhile. Returns the
 * new hash.
 */
async function renewHash(ctx: Context, did: Did, password: string, before: string): Promise<string> {
  const hash = await hashPassword(ctx, password)
  await ctx.db.transaction((tx) => replacePasswordHash(tx, did, before, hash))
  return hash
}

/**
 * Attempt a login with the account's own password, whatever the account's status. Returns as `provePassword`. Throws
 * `wrong`, or `RateLimitExceeded` after too many failures.
 */
export async function loginWithPassword(
  exchange: Exchange,
  identifier: string,
  password: string,
  wrong: () => Refusal,
  attempting: Attempting = {},
): Promise<Revalidate> {
  const login = await attemptLogin(
    exchange,
    identifier,
    (account) => provePassword(exchange.ctx, account, password, wrong),
    attempting,
  )
  if (!login.ok) throw loginRefused(exchange, login.fault, wrong())
  return login.value
}

/** Returns the refusal for a failed login: `RateLimitExceeded` if it was blocked, else `wrong`. */
export const loginRefused = (exchange: Exchange, fault: LoginFault, wrong: Refusal): Refusal =>
  fault === 'blocked' ? limitRefusal(exchange, failureLimit, 'Too many failed logins') : wrong
