/** Counts password attempts by identifier, even if rate limits are disabled. */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import { WINDOW_MILLIS } from './sign-in-attempt-store.ts'

export const MAX_FAILURES = 5
/** Maximum number of identifiers with a count; the oldest are forgotten first. */
const MAX_IDENTIFIERS = 100_000

/** The attempts to sign in with one identifier. */
export interface Attempts {
  readonly nameHash: string
  failures: Failure[]
  running: number
  waiting: (() => void)[]
}

interface Failure {
  /** On the monotonic clock, in milliseconds. */
  at: number
  /** Network of the caller; empty if unknown. */
  network: string
}

/** Why an attempt is refused before the password is compared. */
export interface Blocked {
  /** Whether some of the failures came from other networks than the caller's. */
  byOthers: boolean
}

/**
 * Lets only as many attempts run at a time as may still fail. So concurrent guesses gain nothing, and concurrent
 * correct passwords wait instead of being refused.
 *
 * Identifiers are forgotten once their failures no longer count. They are stored as hashes, because strangers choose
 * them, and because the runtime would keep the whole text from which an identifier was cut.
 */
export class LoginAttempts {
  readonly #attempts = new BoundedCache<Attempts>(MAX_IDENTIFIERS)
  #turnAt: number

  constructor(readonly clock: Pick<Clock, 'monotonic'>) {
    this.#turnAt = clock.monotonic() + WINDOW_MILLIS
  }

  /** Number of identifiers that are kept. */
  get size(): number {
    return this.#attempts.size
  }

  /** Returns the value to pass to `leave`, unless too many have failed. */
  async enter(identifier: string, network: string): Promise<Attempts | Blocked> {
    const attempts = this.#of(hashOf(identifier))
    for (;;) {
      const failures = this.#failures(attempts)
      if (failures.length >= MAX_FAILURES) return { byOthers: failures.some((failure) => failure.network !== network) }
      if (failures.length + attempts.running < MAX_FAILURES) break
      await new Promise<void>((resolve) => attempts.waiting.push(resolve))
    }
    attempts.running++
    return attempts
  }

  /** `failed` is null if no password was compared. */
  leave(attempts: Attempts, failed: boolean | null, network: string): void {
    attempts.running--
    if (failed === true) {
      attempts.failures.push({ at: this.clock.monotonic(), network })
      // The window begins now, however long the attempt took.
      this.#attempts.set(attempts.nameHash, attempts)
    }
    if (failed === false) attempts.failures = []
    for (const resume of attempts.waiting.splice(0)) resume()
  }

  #failures(attempts: Attempts): readonly Failure[] {
    const since = this.clock.monotonic() - WINDOW_MILLIS
    attempts.failures = attempts.failures.filter(({ at }) => at > since)
    return attempts.failures
  }

  #of(nameHash: string): Attempts {
    const now = this.clock.monotonic()
    if (now >= this.#turnAt) {
      this.#attempts.turn()
      this.#turnAt = now + WINDOW_MILLIS
    }
    const known = this.#attempts.use(nameHash)
    if (known !== undefined) return known
    const attempts: Attempts = { nameHash, failures: [], running: 0, waiting: [] }
    this.#attempts.set(nameHash, attempts)
    return attempts
  }
}

const hashOf = (identifier: string): string => new Bun.SHA256().update(identifier).digest('base64url')
