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

/** How many times the clock was found to have been set since this process started. */
export interface ClockJumps {
  all: number
  /** Jumps that are too long for a machine that has slept for a night. */
  long: number
}

export class ClockWatch {
  #wall: Millis
  #monotonic: number
  #jumps: ClockJumps = { all: 0, long: 0 }
  #hasComparedStart = false

  constructor(
    readonly db: Database,
    readonly clock: Clock,
  ) {
    this.#wall = clock.now()
    this.#monotonic = clock.monotonic()
  }

  /** Check the clock. */
  async jumps(): Promise<ClockJumps> {
    const { clock, db } = this
    const seenAt = (await db.get<{ at: Millis | null }>(sql`SELECT seen_at AS at FROM clock_seen`))!.at
    if (
      !this.#hasComparedStart &&
      seenAt !== null &&
      (this.#wall < seenAt - MAX_DRIFT_MILLIS || this.#wall > seenAt + MAX_PAUSE_MILLIS)
    )
      this.#note(seenAt - this.#wall)
    this.#hasComparedStart = true
    const [wall, monotonic] = [clock.now(), clock.monotonic()]
    const drift = wall - this.#wall - (monotonic - this.#monotonic)
    if (Math.abs(drift) > MAX_DRIFT_MILLIS) this.#note(drift)
    this.#wall = wall
    this.#monotonic = monotonic
    if (seenAt === null || wall < seenAt || wall > seenAt + NOTE_MILLIS)
      await db.run(sql`UPDATE clock_seen SET seen_at = ${wall}`)
    return this.#jumps
  }

  #note(byMillis: number): void {
    const { all, long } = this.#jumps
    this.#jumps = { all: all + 1, long: Math.abs(byMillis) > MAX_PAUSE_MILLIS ? long + 1 : long }
  }
}
