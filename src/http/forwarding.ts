/**
 * The reader thread's end of requests that the main thread has to answer. Bodies and WebSockets go in pieces, which the
 * receiving thread asks for, so that neither thread keeps more for a slow client than it would by itself.
 */
import type { Socket, SocketHandler } from './endpoint.ts'
import type { Peer } from './peer.ts'
import { alone, ArrivingPieces, type AnswerMessage, type ForwardMessage, type Pieces } from './thread-messages.ts'

/** A body of at most this many bytes is sent along with the request. */
const WHOLE_BYTES = 64 * 1024

type Answer = Extract<AnswerMessage, { type: 'response' | 'upgrade' }>

/** For clients that have disconnected. */
const noAnswer: Answer = { type: 'response', id: 0, status: 500, headers: [], body: null, isStreamed: false }

/** A request that the main thread answers. */
class Forwarded implements SocketHandler {
  readonly #answered = Promise.withResolvers<Answer>()
  #response: ArrivingPieces | null = null
  #body: Pieces | null = null
  #socket: Socket | null = null
  /** Bytes sent over the WebSocket that the main thread does not yet know to be taken. */
  #unsaidBytes = 0

  constructor(
    readonly id: number,
    readonly request: Request,
    readonly peer: Peer,
    readonly post: (message: ForwardMessage) => void,
    readonly onEnd: () => void,
  ) {}

  async answer(): Promise<Response> {
    const { id, request, peer, post } = this
    const { method, url, headers } = request
    const length = Number(headers.get('content-length') ?? (headers.has('transfer-encoding') ? Infinity : 0))
    const gone = () => this.#gone()
    request.signal.addEventListener('abort', gone)
    try {
      const body = length > 0 && length <= WHOLE_BYTES ? await request.bytes() : null
      const isStreamed = body === null && length > 0 && request.body !== null
      if (isStreamed) this.#body = request.body!.getReader()
      post({
        type: 'request',
        id,
        method,
        url,
        headers: [...headers],
        address: peer.addressOf(request),
        body: body && alone(body),
        isStreamed,
      })
      const answer = await this.#answered.promise
      return answer.type === 'upgrade' ? this.#upgraded() : this.#responded(answer)
    } finally {
      if (this.#response === null) request.signal.removeEventListener('abort', gone)
    }
  }

  #responded({ status, headers, body, isStreamed }: Extract<Answer, { type: 'response' }>): Response {
    const { id, post } = this
    if (isStreamed)
      this.#response = new ArrivingPieces({
        first: body,
        ask: () => post({ type: 'more', id }),
        cancelled: () => this.#gone(),
      })
    else this.onEnd()
    return new Response((this.#response?.stream ?? body) as ConstructorParameters<typeof Response>[0], {
      status,
      headers,
    })
  }

  #upgraded(): Response {
    const { request, peer } = this
    if (peer.upgrade(request, this)) return new Response(null)
    this.#gone()
    return new Response('Expected a WebSocket upgrade\n', { status: 400 })
  }

  #gone(): void {
    this.#response?.fail(new Error('the client has disconnected'))
    this.#answered.resolve(noAnswer)
    this.post({ type: 'gone', id: this.id })
    this.onEnd()
  }

  open(socket: Socket): void {
    this.#socket = socket
    this.post({ type: 'opened', id: this.id })
  }

  drain(): void {
    const taken = this.#unsaidBytes - (this.#socket?.bufferedBytes() ?? 0)
    if (taken <= 0) return
    this.#unsaidBytes -= taken
    this.post({ type: 'taken', id: this.id, bytes: taken })
  }

  closed(): void {
    this.#socket = null
    this.#gone()
  }

  receive(message: AnswerMessage): void {
    switch (message.type) {
      case 'response':
      case 'upgrade':
        return this.#answered.resolve(message)
      case 'piece':
        this.#response?.add(message.bytes)
        if (message.bytes === null) this.onEnd()
        return
      case 'broken':
        this.#response?.fail(new Error('the response was cut off'))
        return this.onEnd()
      case 'more':
        return void this.#sendPiece()
      case 'idle':
        return this.peer.mayIdle(this.request, message.may)
      case 'frames':
        return this.#send(message.frames)
      case 'close':
        return this.#socket?.close(message.code, message.reason)
      case 'cut':
        return this.#socket?.cut()
    }
  }

  async #sendPiece(): Promise<void> {
    const { id, post } = this
    try {
      const { value } = await this.#body!.read()
      post({ type: 'piece', id, bytes: value === undefined ? null : alone(value) })
    } catch {
      // The client has broken off its body: the main thread decides what follows.
      post({ type: 'gone', id })
    }
  }

  #send(frames: readonly Uint8Array[]): void {
    const socket = this.#socket
    if (socket === null) return
    socket.batch(() => {
      for (const frame of frames) {
        this.#unsaidBytes += frame.length
        socket.send(frame)
      }
    })
    this.drain()
  }
}

export class Forwarding {
  readonly #under = new Map<number, Forwarded>()
  #count = 0

  constructor(readonly post: (message: ForwardMessage) => void) {}

  /** Has the main thread answer a request. */
  answer(request: Request, peer: Peer): Promise<Response> {
    const id = ++this.#count
    const forwarded = new Forwarded(id, request, peer, this.post, () => this.#under.delete(id))
    this.#under.set(id, forwarded)
    return forwarded.answer()
  }

  receive(message: AnswerMessage): void {
    this.#under.get(message.id)?.receive(message)
  }
}
