/**
 * Keeps the newest frames in memory, so that any number of live subscribers can follow without reading the log.
 *
 * While the tail has followers, writers pass their events to it once these are durable. It reads the log when it starts
 * and when a number is missing. On PostgreSQL, where events get their numbers later and perhaps from another node, it
 * reads the log whenever the sequencer says that there are new ones. A subscriber that is behind the kept events reads
 * the log itself: every event is in at least one of the two.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import { BatchLoop } from '../../../platform/running/batch-loop.ts'
import { outsideRequests } from '../../../platform/running/request-scope.ts'
import { eventsAfter, headSeq, type StoredEvent } from './event-log.ts'
import { sentEventsOf, type SentEvents } from './sent-events.ts'
import { channels, POLL_MILLIS } from './wake-ups.ts'

/** Bytes of frames kept in memory. Beyond this, the older half is dropped. */
const KEPT_BYTES = 16 * 1024 * 1024

export class Tail {
  readonly #ctx: Pick<Context, 'db' | 'log' | 'signals'>
  readonly #sent: SentEvents | null
  readonly #followers = new Set<() => void>()
  /** Ends listening for notifications. */
  #unlisten: (() => void) | null = null
  readonly #reads = new BatchLoop(() => this.#read())
  /** Whether events were withheld because the database may have lost them. */
  #isWithheld = false
  /** Holds all events after `#floor` up to `#head`. */
  #events: StoredEvent[] = []
  #bytes = 0
  #floor: number | null = null
  #head = 0
  /** How often events other than the oldest were deleted from the log. */
  #erasures = 0

  constructor(ctx: Pick<Context, 'db' | 'log' | 'signals'>, sent: SentEvents | null) {
    this.#ctx = ctx
    this.#sent = sent
  }

  get followers(): number {
    return this.#followers.size
  }

  /** The newest number seen. */
  get head(): number {
    return this.#head
  }

  /**
   * Subscribe: `onNews` is called when there are new events, and once the end of the log was found. Returns the
   * function that unsubscribes.
   */
  follow(onNews: () => void): () => void {
    this.#followers.add(onNews)
    this.#unlisten ??= this.#listen()
    this.#reads.wake()
    return () => {
      this.#followers.delete(onNews)
      if (this.#followers.size === 0) this.#rest()
    }
  }

  /**
   * The next events after `cursor`; null if some of them are only in the log. Empty while it is not certain that the
   * database still has its events.
   */
  after(cursor: number, maxEvents = Infinity): StoredEvent[] | null {
    if (this.#ctx.db.cluster?.history.isDoubtful) {
      this.#isWithheld = true
      return []
    }
    if (this.#floor === null || cursor < this.#floor) return null
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#events[middle]!.seq > cursor) high = middle
      else low = middle + 1
    }
    return this.#events.slice(low, low + maxEvents)
  }

  /** Receive the events of a transaction that has just become durable. */
  take(events: readonly StoredEvent[]): void {
    if (this.#followers.size === 0) return
    if (this.#floor === null || events[0]!.seq !== this.#head + 1) return this.#reads.wake()
    this.#append(events)
    this.#tell()
  }

  /** Forget the kept events, because some of them have been deleted from the log. */
  forget(): void {
    this.#erasures++
    if (this.#floor !== null) this.#dropThrough(this.#events.length, this.#head)
  }

  #listen(): (() => void) | null {
    const { db, signals } = this.#ctx
    const { cluster } = db
    if (cluster === null) return null
    const unlisten = cluster.listen(channels.numbered, () => this.#reads.wake())
    const unlistenErased = cluster.listen(channels.erased, () => this.forget())
    const poll = outsideRequests(() => setInterval(() => this.#reads.wake(), POLL_MILLIS))
    const end = () => {
      unlisten()
      unlistenErased()
      clearInterval(poll)
      heedless()
    }
    // Also ends when the server stops, because a socket that is torn down may leave its follower behind.
    const heedless = signals.stopping.subscribe(end)
    return end
  }

  #tell(): void {
    for (const onNews of this.#followers) onNews()
  }

  /** Read the next events of the log, if there are followers. Returns whether there may be more. */
  async #read(): Promise<boolean> {
    if (this.#followers.size === 0) return false
    try {
      const starts = this.#floor === null
      if (starts) this.#head = this.#floor = await headSeq(this.#ctx.db)
      const erasures = this.#erasures
      this.#sent?.raise(this.#head)
      const events = await eventsAfter(this.#ctx.db, this.#head)
      // In the meantime, all followers may have left and new ones arrived, or some of the events been deleted.
      if (this.#floor !== null && erasures === this.#erasures) this.#append(events)
      if (events.length > 0 || starts || this.#isWithheld) {
        this.#isWithheld = false
        this.#tell()
      }
      return events.length > 0
    } catch (error) {
      this.#ctx.log.error('could not read the event log', { error })
      return false
    }
  }

  #append(events: readonly StoredEvent[]): void {
    this.#sent?.note(events)
    for (const event of events) {
      // `take` received it while the log was read.
      if (event.seq <= this.#head) continue
      // A deletion removes rows from the log, perhaps some that are kept here.
      if (event.type === 'account') this.#dropThrough(this.#events.length, this.#head)
      this.#events.push(event)
      this.#bytes += event.frame.length
      this.#head = event.seq
    }
    if (this.#bytes > KEPT_BYTES) this.#halve()
  }

  #halve(): void {
    let bytes = this.#bytes
    let count = 0
    while (bytes > KEPT_BYTES / 2) bytes -= this.#events[count++]!.frame.length
    this.#dropThrough(count, this.#events[count - 1]!.seq)
  }

  #dropThrough(count: number, floor: number): void {
    for (const { frame } of this.#events.splice(0, count)) this.#bytes -= frame.length
    this.#floor = floor
  }

  /** Forget everything when the last follower has left. The next follower starts the tail again. */
  #rest(): void {
    this.#unlisten?.()
    this.#unlisten = null
    this.#events = []
    this.#bytes = 0
    this.#floor = null
  }
}

export const tailOf = perContext((ctx) => new Tail(ctx, sentEventsOf(ctx)))
