/**
 * One subscriber's way through the log: its cursor, and the socket that takes the frames after it.
 *
 * Frames are sent while the socket's buffer is low, and go on when the client has read. A client that leaves its buffer
 * full while the log grows far past it is told so and closed; no frame is ever left out.
 */
import { setImmediate } from 'node:timers/promises'
import type { Exchange, Socket, SocketHandler } from '../../http/endpoint.ts'
import type { Context } from '../../platform/context.ts'
import { decodeParams } from '../../protocol/lexicons/lexicons.ts'
import { eventsAfter, headSeq, prunedThrough, type StoredEvent } from './event-log.ts'
import { errorFrame, infoFrame } from '../../protocol/frames.ts'
import { tailOf } from './tail.ts'

/** Unsent bytes of one client above which it has to read first. */
const HIGH_WATER_BYTES = 1024 * 1024
/** Events that may be added to the log while a client reads nothing of a full buffer. */
const MAX_EVENTS_WHILE_FULL = 5000

const closeCode = { policy: 1008, fault: 1011 } as const

type Start = { ok: true; cursor: number; head: number; isOutdated: boolean } | Refused
type Refused = { ok: false; error: 'InvalidRequest' | 'FutureCursor' | 'ConsumerTooSlow'; message: string }

const consumerTooSlow: Refused = { ok: false, error: 'ConsumerTooSlow', message: 'Stream consumer too slow' }

export class Outbox implements SocketHandler {
  readonly #ctx: Context
  readonly #params: URLSearchParams
  #hasEnded = false
  #hasNews = false
  /** Ends the present wait, whatever it is for. */
  #resume: (() => void) | null = null
  /** Head of the log when the buffer was found full; null while it is not. */
  #fullSince: number | null = null

  constructor({ ctx, url }: Pick<Exchange, 'ctx' | 'url'>) {
    this.#ctx = ctx
    this.#params = url.searchParams
  }

  open(socket: Socket): void {
    this.#run(socket).catch((error: unknown) => {
      this.#ctx.log.error('subscriber lost', { error })
      this.#end()
      socket.close(closeCode.fault, 'InternalServerError')
    })
  }

  drain(): void {
    this.#resume?.()
  }

  closed(): void {
    this.#end()
  }

  async #run(socket: Socket): Promise<void> {
    const start = await startOf(this.#ctx, this.#params)
    if (!start.ok) return this.#refuse(socket, start)
    if (start.isOutdated) socket.send(infoFrame('OutdatedCursor', 'Requested cursor exceeded limit. Possibly missing events'))
    const tail = tailOf(this.#ctx)
    const leave = tail.follow(() => this.#onNews(socket, tail.head))
    try {
      let { cursor } = start
      while (!this.#hasEnded) {
        this.#hasNews = false
        const events = tail.after(cursor) ?? (await this.#storedEvents(cursor))
        for (let sent = 0; sent < events.length; ) {
          // The tail may not have read the head yet, if this is who woke it.
          if (socket.bufferedBytes() > HIGH_WATER_BYTES) await this.#room(socket, Math.max(start.head, tail.head))
          if (this.#hasEnded) return
          socket.batch(() => {
            for (; sent < events.length && socket.bufferedBytes() <= HIGH_WATER_BYTES; sent++) {
              const { seq, frame } = events[sent]!
              if (!socket.send(frame)) return this.#refuse(socket, consumerTooSlow)
              cursor = seq
            }
          })
        }
        if (events.length === 0 && !this.#hasNews) await this.#wait()
      }
    } finally {
      leave()
    }
  }

  async #storedEvents(cursor: number): Promise<StoredEvent[]> {
    // A long replay leaves turns to everybody else.
    await setImmediate()
    return eventsAfter(this.#ctx.db, cursor)
  }

  async #room(socket: Socket, head: number): Promise<void> {
    this.#fullSince = head
    while (!this.#hasEnded && socket.bufferedBytes() > HIGH_WATER_BYTES) await this.#wait()
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
    this.#end()
    socket.send(errorFrame(error, message))
    socket.close(closeCode.policy, error)
  }

  #end(): void {
    this.#hasEnded = true
    this.#resume?.()
  }
}

async function startOf({ db }: Context, params: URLSearchParams): Promise<Start> {
  const decoded = decodeParams('com.atproto.sync.subscribeRepos', params)
  if (!decoded.ok) return { ok: false, error: 'InvalidRequest', message: decoded.message }
  const { cursor } = decoded.value as { cursor?: number }
  const head = await headSeq(db)
  if (cursor === undefined) return { ok: true, cursor: head, head, isOutdated: false }
  if (cursor < 0) return { ok: false, error: 'InvalidRequest', message: 'cursor must not be negative' }
  if (cursor > head) return { ok: false, error: 'FutureCursor', message: 'Cursor in the future.' }
  return { ok: true, cursor, head, isOutdated: cursor < (await prunedThrough(db)) }
}
