/** A plain WebSocket client of the firehose that decodes what it gets. */
import WebSocket from 'ws'
import { decode, decodeFirst, type DataObject } from '../../../src/protocol/cbor.ts'

export interface Message {
  /** `#commit`, …; `error` for an error frame. */
  type: string
  body: DataObject & { seq: number }
  bytes: Buffer
}

export interface Closing {
  code: number
  reason: string
}

/** RFC 6455, 5.5. */
const longestPing = new Uint8Array(125)

export class Subscriber implements Disposable {
  readonly messages: Message[] = []
  readonly closed: Promise<Closing>
  readonly opened: Promise<void>
  readonly #socket: WebSocket
  #onMessage: (() => void) | null = null

  /**
   * `query` with its question mark: `?cursor=0`. `address` is where it comes from, if not from this machine; `program`
   * is how it calls itself.
   */
  constructor(url: string, query = '', address: string | null = null, program: string | null = null) {
    this.#socket = new WebSocket(`${url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos${query}`, {
      headers: {
        ...(address !== null && { 'x-forwarded-for': address }),
        ...(program !== null && { 'user-agent': program }),
      },
    })
    const { promise: closed, resolve: onClosed } = Promise.withResolvers<Closing>()
    const { promise: opened, resolve: onOpened, reject } = Promise.withResolvers<void>()
    this.closed = closed
    this.opened = opened
    this.#socket.on('open', () => onOpened())
    this.#socket.on('error', reject)
    this.#socket.on('close', (code, reason) => onClosed({ code, reason: reason.toString() }))
    this.#socket.on('message', (data: Buffer) => {
      this.messages.push(parse(data))
      this.#onMessage?.()
    })
  }

  /** Returns once the connection is open. */
  static async open(url: string): Promise<Subscriber> {
    const subscriber = new Subscriber(url)
    await subscriber.opened
    return subscriber
  }

  /** Waits until so many messages have come. */
  until(count: number): Promise<Message[]> {
    return this.untilSeen((messages) => messages.length >= count)
  }

  /** Waits until the messages so far are what the caller waits for. */
  async untilSeen(isEnough: (messages: readonly Message[]) => boolean): Promise<Message[]> {
    while (!isEnough(this.messages)) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onMessage = resolve
      await Promise.race([
        promise,
        this.closed.then(({ code }) =>
          Promise.reject(new Error(`closed with ${code} after ${this.messages.length} messages`)),
        ),
      ])
    }
    return this.messages
  }

  get seqs(): number[] {
    return this.messages.map(({ body }) => body.seq)
  }

  /** Stop reading from the network, and start again. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Say that it is alive, unasked. */
  pong(): void {
    this.#socket.pong()
  }

  /** Ask whether the server is alive, this many times. */
  ping(count: number): void {
    for (let i = 0; i < count; i++) this.#socket.ping(longestPing)
  }

  /** Say something, which subscribers have no reason to. */
  say(bytes: Uint8Array): void {
    this.#socket.send(bytes)
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

function parse(bytes: Buffer): Message {
  const { value, rest } = decodeFirst(bytes)
  const header = value as { op: number; t?: string }
  return { type: header.op === -1 ? 'error' : header.t!, body: decode(rest) as Message['body'], bytes }
}
