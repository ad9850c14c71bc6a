/**
 * The alert that nothing can be written. While it holds, the server can neither store that it was sent nor add its
 * message as a durable step. So the message is sent at once, and this process remembers it.
 */
import { HOUR_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { healthFault } from '../server-info/server-info.ts'
import { orderMessage, sendNow, type Message, type Told } from './alert-messages.ts'

/** A database server that restarts, or fails over to another one, is back by then. */
const SERVER_AWAY_MILLIS = MINUTE_MILLIS
/** Time between two messages, if the fault comes and goes. */
const REPEAT_MILLIS = HOUR_MILLIS

const about = {
  name: 'cannot-write',
  subject: '',
  title: 'nothing can be written',
  remedy: 'read the log lines that begin with "service is failing", and run "holdfast doctor"',
} as const

class Outage {
  readonly #looks = new SingleFlight<'look', boolean>()
  #since: Millis | null = null
  #isTold = false
  /** By the monotonic clock. */
  #toldAt = -Infinity

  constructor(readonly ctx: Context) {}

  /**
   * Returns whether nothing can be written now. Sends a message when that begins, and when it is over. A node of a
   * cluster looks for itself, and also when it makes the pass: one of two looks at once joins the other.
   */
  look(): Promise<boolean> {
    return this.#looks.run('look', () => this.#look())
  }

  async #look(): Promise<boolean> {
    const fault = await healthFault(this.ctx)
    if (fault !== null) await this.#tell(fault)
    else if (this.#since !== null) await this.#tellEnd(this.#since)
    return fault !== null
  }

  async #tell(fault: string): Promise<void> {
    const { clock, db } = this.ctx
    const since = (this.#since ??= clock.now())
    const isBrief = db.cluster !== null && clock.now() - since < SERVER_AWAY_MILLIS
    if (this.#isTold || isBrief || clock.monotonic() - this.#toldAt < REPEAT_MILLIS) return
    const told: Told = { ...about, news: 'begun', text: fault, since, overSince: null }
    if (!(await sendNow(this.ctx, this.#message(told)))) return
    this.#isTold = true
    this.#toldAt = clock.monotonic()
  }

  async #tellEnd(since: Millis): Promise<void> {
    if (this.#isTold) {
      const told: Told = { ...about, news: 'over', text: '', since, overSince: this.ctx.clock.now() }
      await this.ctx.db.transaction((tx) => orderMessage(this.ctx, tx, this.#message(told)))
    }
    this.#since = null
    this.#isTold = false
  }

  #message = (told: Told): Message => ({
    id: Bun.randomUUIDv7(),
    type: 'alerts.changed',
    at: this.ctx.clock.now(),
    told: [told],
  })
}

export const outageOf = perContext((ctx) => new Outage(ctx))
