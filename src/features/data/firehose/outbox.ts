/**
 * One subscriber of `com.atproto.sync.subscribeRepos`: its cursor in the log, and the socket that receives the frames.
 *
 * Frames are sent while the socket's buffer is low, and again once the client has read some. While the buffer is full,
 * nothing else is kept for the client: the next frames are read from its cursor later. A client that never reads thus
 * costs only its buffer. If the buffer stays full for too long, or while the log grows far past it, the client is
 * refused with `ConsumerTooSlow` and closed. No frame is skipped; if retention has deleted the next ones, an `#info`
 * frame says so.
 *
 * A frame may have two megabytes, which the runtime copies for each client that has not read it. So a long frame is
 * sent to a few clients at a time, and those that keep others waiting for too long are cut off (`StreamPlaces`).
 */
import type { Client } from '../../../base/fair-queue.ts'
import { OneByOne } from '../../../base/one-by-one.ts'
import { NoPlace } from '../../../base/places.ts'
import type { Exchange, Socket, SocketHandler } from '../../../http/endpoint.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { StreamPlaces, type StreamBounds, type StreamPlace } from '../../../platform/running/stream-places.ts'
import { decodeParams } from '../../../protocol/lexicons/lexicons.ts'
import { eventsAfter, headSeq, PAGE_EVENTS, prunedThrough, type StoredEvent } from './event-log.ts'
import { errorFrame, infoFrame } from '../../../protocol/frames.ts'
import { writtenSeq } from './sequencer-store.ts'
import { sentEventsOf } from './sent-events.ts'
import { listSubscriber } from './subscriber-list.ts'
import { takePlace } from './subscribers.ts'
import { tailOf } from './tail.ts'

/** Nothing is sent to a client with more unsent bytes than this. The operating system buffers some more. */
const HIGH_WATER_BYTES = 64 * 1024
/** Page size for a client that takes few events at a time. */
const MIN_PAGE_EVENTS = 4
/** Events that may be logged while a client's buffer stays full. */
const MAX_EVENTS_WHILE_FULL = 5000

/** A longer frame takes a place. A shorter one costs little beside the bytes that are unsent already. */
const LONG_FRAME_BYTES = HIGH_WATER_BYTES
/**
 * All clients that have not read a long frame hold 64 MB at most. A client of usual speed reads one within a second.
 */
const longFrameBounds: StreamBounds = {
  size: 8,
  ofNetwork: 4,
  maxWaiting: 10_000,
  waitMillis: 60_000,
  patienceMillis: 1000,
  maxStragglers: 24,
}

const turns = perContext(() => new OneByOne())
const longFrames = perContext(({ config }) => new StreamPlaces(config, longFrameBounds))

const closeCode = { policy: 1008, fault: 1011 } as const

type Start = { ok: true; cursor: number; head: number; isOutdated: boolean } | Refused
type Refused = { ok: false; error: 'InvalidRequest' | 'FutureCursor' | 'ConsumerTooSlow'; message: string }

const consumerTooSlow: Refused = { ok: false, error: 'ConsumerTooSlow', message: 'Stream consumer too slow' }

type SubscriberExchange = Pick<Exchange, 'ctx' | 'url' | 'client' | 'ip' | 'request'>

export class Outbox implements SocketHandler {
  readonly #ctx: Context
  readonly #client: Client
  readonly #start: Start
  readonly #givePlaceBack: () => void
  readonly #listed: ReturnType<typeof listSubscriber>
  #hasEnded = false
  #hasNews = false
  /** Cursor at which the client was told that events are missing. */
  #toldOfGapAt: number | null = null
  /** Ends the present wait, whatever its reason. */
  #resume: (() => void) | null = null
  /** Head of the log when the buffer became full; null while it is not full. */
  #fullSince: number | null = null
  /** Held while the client has not read a long frame. */
  #place: StreamPlace | null = null
  /** Aborts the wait for a place. */
  readonly #gone = new AbortController()

  private constructor(exchange: SubscriberExchange, start: Start, givePlaceBack: () => void) {
    this.#ctx = exchange.ctx
    this.#client = exchange.client
    this.#listed = listSubscriber(exchange)
    this.#start = start
    this.#givePlaceBack = givePlaceBack
  }

  /**
   * Takes a place for a subscriber, and finds where it starts before the connection opens: a client without a cursor
   * then misses nothing that happens once it is connected.
   */
  static async accept(exchange: SubscriberExchange): Promise<Outbox> {
    const givePlaceBack = takePlace(exchange)
    try {
      return new Outbox(exchange, await startOf(exchange.ctx, exchange.url.searchParams), givePlaceBack)
    } catch (error) {
      givePlaceBack()
      throw error
    }
  }

  open(socket: Socket): void {
    this.#run(socket).catch((error: unknown) => {
      this.#ctx.log.error('subscriber disconnected after an error', { error })
      this.#end()
      socket.close(closeCode.fault, 'InternalServerError')
    })
  }

  drain(): void {
    this.#resume?.()
  }

  closed(): void {
    this.#givePlaceBack()
    this.#listed.leave()
    this.#end()
    this.#leavePlace()
  }

  async #run(socket: Socket): Promise<void> {
    const start = this.#start
    if (!start.ok) return this.#refuse(socket, start)
    if (start.isOutdated) this.#tellOfGap(socket, start.cursor)
    const tail = tailOf(this.#ctx)
    const leave = tail.follow(() => this.#onNews(socket, tail.head))
    try {
      let { cursor } = start
      let pageEvents = PAGE_EVENTS
      while (!this.#hasEnded) {
        this.#hasNews = false
        const events = tail.after(cursor, pageEvents) ?? (await this.#storedEvents(socket, cursor, pageEvents))
        if (isLong(events[0]) && this.#place === null) {
          await this.#takePlace(socket)
          // Some of the events may have been deleted meanwhile.
          continue
        }
        const { count, reached } = this.#send(socket, events)
        cursor = reached ?? cursor
        if (reached !== null) this.#listed.subscriber.seq = reached
        // If the buffer is full, most of a larger page would not fit, and would be read again. Otherwise a page holds
        // all events of one transaction, which are then sent at once.
        pageEvents = isFull(socket) ? Math.min(PAGE_EVENTS, Math.max(MIN_PAGE_EVENTS, 2 * count)) : PAGE_EVENTS
        const wasFull = isFull(socket)
        if (wasFull) {
          this.#place?.handOver(() => this.#cut(socket))
          // If this subscriber started the tail, the tail may not have read the head yet.
          await this.#room(socket, Math.max(start.head, tail.head))
        }
        // A refused client keeps its place until its connection is closed, because the bytes that it has not read are
        // kept.
        if (this.#hasEnded) return
        this.#leavePlace()
        if (!wasFull && reached === null && !this.#hasNews) await this.#wait()
      }
    } finally {
      leave()
    }
  }

  async #storedEvents(socket: Socket, cursor: number, maxEvents: number): Promise<StoredEvent[]> {
    const { db } = this.#ctx
    // Other requests are served after each page, however many subscribers replay the log.
    await turns(this.#ctx).next()
    const events = await eventsAfter(db, cursor, maxEvents)
    sentEventsOf(this.#ctx)?.note(events)
    // The next number is missing if its account was deleted, or if retention has overtaken the client.
    const isNext = events.length === 0 || events[0]!.seq === cursor + 1
    if (!isNext && this.#toldOfGapAt !== cursor && cursor < (await prunedThrough(db))) this.#tellOfGap(socket, cursor)
    return events
  }

  #tellOfGap(socket: Socket, cursor: number): void {
    if (this.#hasEnded) return
    this.#toldOfGapAt = cursor
    socket.send(infoFrame('OutdatedCursor', 'Requested cursor exceeded limit. Possibly missing events'))
  }

  /** Wait for a place for a long frame. A client that waits for too long is refused. */
  async #takePlace(socket: Socket): Promise<void> {
    try {
      this.#place = await longFrames(this.#ctx).enter(this.#gone, undefined, this.#client)
    } catch (error) {
      if (error instanceof NoPlace) this.#refuse(socket, consumerTooSlow)
      else if (!this.#hasEnded) throw error
    }
    if (this.#hasEnded) this.#leavePlace()
  }

  #leavePlace(): void {
    this.#place?.leave()
    this.#place = null
  }

  #cut(socket: Socket): void {
    this.#leavePlace()
    socket.cut()
  }

  /** Send as many events as fit. Returns how many, and the number of the last; null if none was sent. */
  #send(socket: Socket, events: readonly StoredEvent[]): { count: number; reached: number | null } {
    let count = 0
    let reached: number | null = null
    if (this.#hasEnded || events.length === 0) return { count, reached }
    socket.batch(() => {
      for (const event of events) {
        if (isFull(socket) || (isLong(event) && this.#place === null)) return
        if (!socket.send(event.frame)) return this.#refuse(socket, consumerTooSlow)
        reached = event.seq
        count++
      }
    })
    return { count, reached }
  }

  /** Wait until the client has read enough. A client that reads nothing is refused, even if it answers pings. */
  async #room(socket: Socket, head: number): Promise<void> {
    this.#fullSince = head
    while (!this.#hasEnded && isFull(socket)) {
      const stalled = setTimeout(
        () => this.#refuse(socket, consumerTooSlow),
        this.#ctx.config.firehose.stalledSecs * 1000,
      )
      await this.#wait()
      clearTimeout(stalled)
    }
    this.#fullSince = null
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  #onNews(socket: Socket, head: number): void {
    this.#hasNews = true
    if (this.#fullSince === null) this.#resume?.()
    else if (head - this.#fullSince > MAX_EVENTS_WHILE_FULL) this.#refuse(socket, consumerTooSlow)
  }

  #refuse(socket: Socket, { error, message }: Refused): void {
    if (this.#hasEnded) return
    this.#end()
    socket.send(errorFrame(error, message))
    socket.close(closeCode.policy, error)
  }

  #end(): void {
    this.#hasEnded = true
    this.#gone.abort()
    this.#resume?.()
  }
}

const isLong = (event: StoredEvent | undefined) => event !== undefined && event.frame.length > LONG_FRAME_BYTES
const isFull = (socket: Socket) => socket.bufferedBytes() > HIGH_WATER_BYTES

async function startOf({ config, db }: Context, params: URLSearchParams): Promise<Start> {
  const decoded = decodeParams('com.atproto.sync.subscribeRepos', params)
  if (!decoded.ok) return { ok: false, error: 'InvalidRequest', message: decoded.message }
  const { cursor: wanted } = decoded.value as { cursor?: number }
  // A client without a cursor starts after all events that are written, even those that have no number yet.
  const head = await (wanted === undefined && db.cluster !== null ? writtenSeq(db) : headSeq(db))
  if (wanted === undefined) return { ok: true, cursor: head, head, isOutdated: false }
  // A cursor below the first number asks for everything that is retained.
  const cursor = Math.max(wanted, 0)
  if (cursor > head) {
    // If another machine has replaced this one, it may have sent events that this one lacks: an empty commit then
    // throws.
    if (config.backup.continuous !== null) await db.transaction(async () => {})
    return { ok: false, error: 'FutureCursor', message: 'Cursor in the future.' }
  }
  return { ok: true, cursor, head, isOutdated: cursor < (await prunedThrough(db)) }
}
