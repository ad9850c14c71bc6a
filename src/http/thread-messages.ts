/**
 * What the main thread and a reader thread tell each other about requests that the main thread answers: see
 * `forwarded-requests.ts` and `forwarding.ts`. `id` names the request, in both directions.
 */

export type HeaderPairs = [name: string, value: string][]

/** A request or a response. */
interface Content {
  headers: HeaderPairs
  /** A short body as a whole. */
  body: Uint8Array | null
  /** The body follows in pieces, each when it is asked for. */
  isStreamed: boolean
}

/** From either side, about a body that it sends or receives. */
type PieceMessage =
  /** Null at the end of the body. */
  | { type: 'piece'; id: number; bytes: Uint8Array | null }
  /** Asks for another piece. */
  | { type: 'more'; id: number }

/** From the reader. */
export type ForwardMessage =
  /** `address` is that of the direct peer. */
  | (Content & { type: 'request'; id: number; method: string; url: string; address: string })
  | PieceMessage
  /** The client is gone, or its body has broken off. */
  | { type: 'gone'; id: number }
  /** The client has a WebSocket now. */
  | { type: 'opened'; id: number }
  /** The client has taken this many bytes of what was sent over its WebSocket. */
  | { type: 'taken'; id: number; bytes: number }

/** From the main thread. */
export type AnswerMessage =
  | (Content & { type: 'response'; id: number; status: number })
  | PieceMessage
  /** The response has broken off. */
  | { type: 'broken'; id: number }
  /** As in `Peer.mayIdle`. */
  | { type: 'idle'; id: number; may: boolean }
  /** The client may have a WebSocket. */
  | { type: 'upgrade'; id: number }
  | { type: 'frames'; id: number; frames: Uint8Array[] }
  | { type: 'close'; id: number; code: number; reason: string }
  /** As in `Socket.cut`. */
  | { type: 'cut'; id: number }

/** Returns bytes that share their memory with no others: a message copies all of the memory behind them. */
export const alone = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)

/** Reads the pieces of a body. */
export type Pieces = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/** A stream of the pieces that another thread has. `ask` is called for each of them. */
export class ArrivingPieces {
  readonly stream: ReadableStream<Uint8Array>
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #next: (() => void) | null = null
  #hasEnded = false

  constructor({ ask, cancelled, first }: { ask: () => void; cancelled: () => void; first?: Uint8Array | null }) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          if (first) controller.enqueue(first)
        },
        pull: () => {
          const { promise, resolve } = Promise.withResolvers<void>()
          this.#next = resolve
          ask()
          return promise
        },
        cancel: () => {
          this.#hasEnded = true
          this.#next?.()
          cancelled()
        },
      },
      { highWaterMark: 0 },
    )
  }

  /** Null at the end. */
  add(bytes: Uint8Array | null): void {
    if (this.#hasEnded) return
    this.#hasEnded = bytes === null
    if (bytes === null) this.#controller?.close()
    else this.#controller?.enqueue(bytes)
    this.#next?.()
  }

  fail(error: Error): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#controller?.error(error)
    this.#next?.()
  }
}
