/**
 * Notices when the wall clock was set, for those who delete by it.
 *
 * It was when, since the last look, not as much time has passed on it as on the monotonic clock. At a start, which has
 * no monotonic clock to compare with, it was when it stands before the last look of the process before, or so long after
 * it that either this server did not run or the clock is wrong.
 */
import type { Clock } from './clock.ts'
import { sql, type Database } from '../database/database.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** Less than this is a clock that is kept right. */
const MAX_DRIFT_MILLIS = 60_000
/** A server that was stopped for longer cannot tell the time that has passed from a clock that was set. */
const MAX_PAUSE_MILLIS = 24 * 60 * 60 * 1000
/** A look is written down when the one before is older than this, or is in the future. */
const NOTE_MILLIS = 600_000

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

  /** Look at the clock. Returns how often it was found to have been set, counted from the start of this process. */
  async jumps(): Promise<number> {
    const { clock, db } = this
    const seenAt = (await db.get<{ at: Millis | null }>(sql`SELECT seen_at AS at FROM clock_seen`))!.at
    if (!this.#hasComparedStart && seenAt !== null && (this.#wall < seenAt - MAX_DRIFT_MILLIS || this.#wall > seenAt + MAX_PAUSE_MILLIS))
      this.#jumps++
    this.#hasComparedStart = true
    const [wall, monotonic] = [clock.now(), clock.monotonic()]
    if (Math.abs(wall - this.#wall - (monotonic - this.#monotonic)) > MAX_DRIFT_MILLIS) this.#jumps++
    this.#wall = wall
    this.#monotonic = monotonic
    if (seenAt === null || wall < seenAt || wall > seenAt + NOTE_MILLIS) await db.run(sql`UPDATE clock_seen SET seen_at = ${wall}`)
    return this.#jumps
  }
}
