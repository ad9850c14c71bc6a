/** Trying a password: one way in for sessions and for consent, with one count of what went wrong. */
import { limitKey } from '../../http/client-address.ts'
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { LineBudget } from '../../platform/running/line-budget.ts'
import type { Tx } from '../../platform/database/database.ts'
import { accountNamed, findPasswordHash, type Account } from './account-store.ts'
import { verifyPassword } from './passwords.ts'

const MAX_FAILURES = 5
const WINDOW_MILLIS = 60_000
/** Identifiers that are counted; the oldest goes first. */
const MAX_IDENTIFIERS = 100_000
/** The length of the longest DID. No account has a longer identifier, so tries at one need not be counted. */
const MAX_IDENTIFIER_CHARS = 2048

interface Attempts {
  /** On the monotonic clock. */
  failedAt: number[]
  running: number
  waiting: (() => void)[]
}

/**
 * Attempts by identifier, whether or not rate limits are switched on. As many run at a time as may still fail; so
 * guesses sent all at once gain nothing, and right passwords wait for each other instead of being refused.
 */
class LoginAttempts {
  readonly #attempts = new Map<string, Attempts>()

  constructor(readonly clock: Clock) {}

  /** Null when too many have failed; otherwise what `leave` is to be given. */
  async enter(identifier: string): Promise<Attempts | null> {
    const attempts = this.#of(identifier)
    for (;;) {
      const failures = this.#failures(attempts)
      if (failures >= MAX_FAILURES) return null
      if (failures + attempts.running < MAX_FAILURES) break
      await new Promise<void>((resolve) => attempts.waiting.push(resolve))
    }
    attempts.running++
    return attempts
  }

  /** `failed` is null when no password was compared. */
  leave(attempts: Attempts, failed: boolean | null): void {
    attempts.running--
    if (failed === true) attempts.failedAt.push(this.clock.monotonic())
    if (failed === false) attempts.failedAt = []
    for (const resume of attempts.waiting.splice(0)) resume()
  }

  #failures(attempts: Attempts): number {
    const since = this.clock.monotonic() - WINDOW_MILLIS
    attempts.failedAt = attempts.failedAt.filter((at) => at > since)
    return attempts.failedAt.length
  }

  #of(identifier: string): Attempts {
    let attempts = this.#attempts.get(identifier)
    if (!attempts) {
      this.#attempts.set(identifier, (attempts = { failedAt: [], running: 0, waiting: [] }))
      if (this.#attempts.size > MAX_IDENTIFIERS) this.#attempts.delete(this.#attempts.keys().next().value!)
    }
    return attempts
  }
}

const loginAttempts = perContext(({ clock }) => new LoginAttempts(clock))

type LoginFault = 'wrong' | 'blocked'
type LoginOutcome<T> = { ok: true; value: T } | { ok: false; fault: LoginFault }

/**
 * Let `attempt` decide whether the password fits. It gets the account by handle, DID or address, or null for one that
 * is not here, and answers null for a miss; it does the same work in both cases. Failures are forgiven when it is done.
 */
export async function attemptLogin<T>(exchange: Exchange, identifier: string, attempt: (account: Account | null) => Promise<T | null>): Promise<LoginOutcome<T>> {
  const { ctx } = exchange
  const name = identifier.trim().toLowerCase().slice(0, MAX_IDENTIFIER_CHARS)
  const attempts = loginAttempts(ctx)
  const entered = await attempts.enter(name)
  if (!entered) {
    noteFailure(exchange, 'too many failures', null)
    return { ok: false, fault: 'blocked' }
  }
  let failed: boolean | null = null
  try {
    const account = await accountNamed(ctx.db, name)
    const value = await attempt(account)
    failed = value === null
    if (value !== null) return { ok: true, value }
    noteFailure(exchange, account === null ? 'no such account' : 'wrong password', account)
    return { ok: false, fault: 'wrong' }
  } finally {
    attempts.leave(entered, failed)
  }
}

const failureLines = perContext(({ clock }) => new LineBudget(clock))

/** Without what was typed: of the identifier it says whose account it names, if any. */
function noteFailure({ ctx, ip }: Exchange, reason: string, account: Account | null): void {
  failureLines(ctx).within(limitKey(ip), (omitted) => ctx.log.info('sign-in failed', { reason, did: account?.did, ip, omitted }))
}

/**
 * Whether what opened an account still does. To be asked in the transaction that gives something for it: comparing takes
 * its time, and whoever has just replaced a password must not find anybody signed in with the old one.
 */
export type StillHolds = (tx: Tx) => Promise<boolean>

/** Null when it is not the password of the account itself. The work does not tell whether there is an account, or a password. */
export async function provePassword(ctx: Context, account: Account | null, password: string): Promise<StillHolds | null> {
  const hash = account && (await findPasswordHash(ctx.db, account.did))
  const isRight = await verifyPassword(ctx, password, hash)
  if (!account || !isRight) return null
  return async (tx) => (await findPasswordHash(tx, account.did)) === hash
}

/** An account that is opened by its own password, in whatever state it is. */
export const loginWithPassword = (exchange: Exchange, identifier: string, password: string): Promise<LoginOutcome<StillHolds>> =>
  attemptLogin(exchange, identifier, (account) => provePassword(exchange.ctx, account, password))

/** What to throw for a login that failed: `wrong` when the password did not fit. */
export const loginRefused = (fault: LoginFault, wrong: Refusal): Refusal => (fault === 'blocked' ? tooManyFailedLogins() : wrong)

const tooManyFailedLogins = () => new Refusal(429, 'RateLimitExceeded', 'Too many failed logins', { headers: { 'Retry-After': String(WINDOW_MILLIS / 1000) } })
