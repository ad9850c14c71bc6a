/**
 * Detects that the wall clock was set, for sweeps that delete things by age.
 *
 * Between two checks, the wall clock and the monotonic clock must advance by the same amount. The first check of a
 * process has no earlier reading of the monotonic clock. It compares the wall clock with the time that the previous
 * process recorded last. The clock counts as set if it is before that time, or so long after it that either the server
 * was stopped for long or the clock is wrong.
 */
import { DAY_MILLIS, MINUTE_MILLIS } from '../../base/durations.ts'
import type { Clock } from './clock.ts'
import { sql, type Database } from '../database/database.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** A difference up to this is ordinary clock correction. */
const MAX_DRIFT_MILLIS = MINUTE_MILLIS
/** After a longer stop, the server cannot tell elapsed time from a clock that was set. */
const MAX_PAUSE_MILLIS = DAY_MILLIS
/** A check is recorded in the database if the previous record is older than this, or is in the future. */
const NOTE_MILLIS = 10 * MINUTE_MILLIS

export class ClockWatch {
  #wall: Millis
  #monotonic: number
  #jumps = 0
  #hasComparedStart = false

  constructor(
    readonly db: Database,
    readonly clock: Clock,
  ) {
    this.#wall = clock.now()
    this.#monotonic = clock.monotonic()
  }

  /** Check the clock. Returns how many times it was found to have been set since this process started. */
  async jumps(): Promise<number> {
    const { clock, db } = this
    const seenAt = (await db.get<{ at: Millis | null }>(sql`SELECT seen_at AS at FROM clock_seen`))!.at
    if (
      !this.#hasComparedStart &&
      seenAt !== null &&
      (this.#wall < seenAt - MAX_DRIFT_MILLIS || this.#wall > seenAt + MAX_PAUSE_MILLIS)
    )
      this.#jumps++
    this.#hasComparedStart = true
    const [wall, monotonic] = [clock.now(), clock.monotonic()]
    if (Math.abs(wall - this.#wall - (monotonic - this.#monotonic)) > MAX_DRIFT_MILLIS) this.#jumps++
    this.#wall = wall
    this.#monotonic = monotonic
    if (seenAt === null || wall < seenAt || wall > seenAt + NOTE_MILLIS)
      await db.run(sql`UPDATE clock_seen SET seen_at = ${wall}`)
    return this.#jumps
  }
}
