/** The main thread's end of requests that came to a reader thread: see `forwarding.ts`. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Dispatcher } from './dispatcher.ts'
import type { Socket, SocketHandler } from './endpoint.ts'
import { alone, ArrivingPieces, type AnswerMessage, type ForwardMessage, type Pieces } from './thread-messages.ts'

/** Unread bytes of a client above which nothing more is sent over its WebSocket: as on a connection of this thread. */
const SOCKET_BACKPRESSURE_BYTES = 16 * 1024 ** 2

type Arrived = Extract<ForwardMessage, { type: 'request' }>
type Post = (message: AnswerMessage) => void

/** A WebSocket of a reader thread. */
class FarSocket implements Socket {
  /** Bytes that were sent, and that the client may not have taken yet. */
  #bufferedBytes = 0
  #wasFull = false
  #batch: Uint8Array[] | null = null

  constructor(
    readonly id: number,
    readonly handler: SocketHandler,
    readonly post: Post,
  ) {}

  send(message: Uint8Array): boolean {
    if (this.#bufferedBytes + message.length > SOCKET_BACKPRESSURE_BYTES) return false
    this.#bufferedBytes += message.length
    if (this.#batch === null) this.post({ type: 'frames', id: this.id, frames: [alone(message)] })
    else this.#batch.push(alone(message))
    return true
  }

  bufferedBytes(): number {
    this.#wasFull ||= this.#bufferedBytes > 0
    return this.#bufferedBytes
  }

  batch(work: () => void): void {
    this.#batch = []
    try {
      work()
    } finally {
      if (this.#batch.length > 0) this.post({ type: 'frames', id: this.id, frames: this.#batch })
      this.#batch = null
    }
  }

  close(code: number, reason: string): void {
    this.post({ type: 'close', id: this.id, code, reason })
  }

  cut(): void {
    this.post({ type: 'cut', id: this.id })
  }

  taken(bytes: number): void {
    this.#bufferedBytes -= bytes
    if (!this.#wasFull) return
    this.#wasFull = false
    this.handler.drain()
  }
}

/** One request of a reader thread. */
class FarRequest {
  readonly #gone = new AbortController()
  readonly #body: ArrivingPieces | null
  #socket: FarSocket | null = null
  #response: Pieces | null = null

  constructor(
    readonly arrived: Arrived,
    readonly post: Post,
    readonly onEnd: () => void,
  ) {
    const { id, isStreamed } = arrived
    this.#body = isStreamed ? new ArrivingPieces({ ask: () => post({ type: 'more', id }), cancelled: () => {} }) : null
  }

  async answer({ dispatch }: Pick<Dispatcher, 'dispatch'>): Promise<void> {
    const { id, method, url, headers, address, body } = this.arrived
    const request = new Request(url, {
      method,
      headers,
      body: (this.#body?.stream ?? body) as RequestInit['body'],
      signal: this.#gone.signal,
    })
    const response = await dispatch(request, {
      addressOf: () => address,
      mayIdle: (_, may) => this.post({ type: 'idle', id, may }),
      upgrade: (_, handler) => {
        // The client has disconnected already, so nothing would end its socket later.
        if (this.#gone.signal.aborted) return false
        this.#socket = new FarSocket(id, handler, this.post)
        return true
      },
    })
    if (this.#socket !== null) this.post({ type: 'upgrade', id })
    else await this.#send(response)
  }

  async #send(response: Response): Promise<void> {
    const { id, method } = this.arrived
    const { status } = response
    const headers: [string, string][] = [...response.headers]
    const head = { type: 'response', id, status, headers } as const
    if (response.body === null || this.#gone.signal.aborted) {
      await response.body?.cancel()
      this.post({ ...head, body: null, isStreamed: false })
      return this.onEnd()
    }
    const pieces = (this.#response = response.body.getReader())
    if (method === 'HEAD') {
      // The length of a coded response is not known before it is sent.
      const isKnown = response.headers.has('content-length') || response.headers.has('content-encoding')
      if (isKnown) await pieces.cancel()
      else headers.push(['Content-Length', String(await countBytes(pieces))])
      this.post({ ...head, body: null, isStreamed: false })
      return this.onEnd()
    }
    const first = await pieces.read()
    const second = first.done ? first : pieces.read()
    // Nearly all responses are one piece, and then its end is known at once.
    const soon = first.done ? first : await Promise.race([second, nextTurn(null)])
    const isWhole = soon !== null && soon.done
    this.post({ ...head, body: first.value === undefined ? null : alone(first.value), isStreamed: !isWhole })
    if (isWhole) return this.onEnd()
    this.#next = Promise.resolve(second)
  }

  /** The piece that the reader thread gets when it asks for one. */
  #next: Promise<{ value?: Uint8Array | undefined }> | null = null

  async #sendPiece(): Promise<void> {
    const { id } = this.arrived
    try {
      const { value } = await this.#next!
      this.post({ type: 'piece', id, bytes: value === undefined ? null : alone(value) })
      if (value === undefined) return this.onEnd()
      this.#next = this.#response!.read()
      // Reported when the reader thread asks for the piece. Until then, it must not become an unhandled rejection.
      this.#next.catch(() => {})
    } catch {
      // The reason was logged where the response was made.
      this.post({ type: 'broken', id })
      this.onEnd()
    }
  }

  receive(message: Exclude<ForwardMessage, Arrived>): void {
    switch (message.type) {
      case 'piece':
        return this.#body?.add(message.bytes)
      case 'more':
        return void this.#sendPiece()
      case 'opened':
        return this.#socket === null ? undefined : this.#socket.handler.open(this.#socket)
      case 'taken':
        return this.#socket?.taken(message.bytes)
      case 'gone':
        return this.end()
    }
  }

  /** The client is gone. */
  end(): void {
    this.onEnd()
    const gone = new Error('the client has disconnected')
    this.#gone.abort(gone)
    this.#body?.fail(gone)
    // A response that has failed already cannot be cancelled.
    this.#response?.cancel(gone).catch(() => {})
    this.#socket?.handler.closed()
  }
}

async function countBytes(pieces: Pieces): Promise<number> {
  let count = 0
  for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) count += piece.value.length
  return count
}

/** The requests of one reader thread. */
export class ForwardedRequests {
  readonly #under = new Map<number, FarRequest>()

  constructor(
    readonly dispatcher: Pick<Dispatcher, 'dispatch'>,
    readonly post: Post,
  ) {}

  get running(): number {
    return this.#under.size
  }

  receive(message: ForwardMessage): void {
    const { id } = message
    if (message.type !== 'request') return this.#under.get(id)?.receive(message)
    const far = new FarRequest(message, this.post, () => this.#under.delete(id))
    this.#under.set(id, far)
    far.answer(this.dispatcher).catch(() => {
      // The dispatcher answers its own failures: what is left is a client that went away, or a body that broke off.
      this.post({ type: 'response', id, status: 500, headers: [], body: null, isStreamed: false })
      far.end()
    })
  }

  /** The thread is gone, and so are its clients. */
  end(): void {
    for (const far of this.#under.values()) far.end()
  }
}
