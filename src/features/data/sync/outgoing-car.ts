/** Sends archives: short ones whole, longer ones from a queue, at the speed of the client. */
import { WholeResponse } from '../../../http/encoding.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { perContext } from '../../../platform/context.ts'
import { SpillQueue, SpillRoom } from '../../../platform/files/spill-queue.ts'
import { clientHere } from '../../../platform/running/request-scope.ts'
import type { StreamPlace } from '../../../platform/running/stream-places.ts'

const CAR_TYPE = 'application/vnd.ipld.car'

/** Bytes queued for clients that are slower than the disk. Beyond them, archives for such clients end early. */
const maxQueued = { memoryBytes: 64 * 1024 ** 2, fileBytes: 2 * 1024 ** 3 }
/** A longer archive is queued. A shorter one takes no more memory than many other responses. */
const SHORT_BYTES = 256 * 1024

const spillRoom = perContext(() => new SpillRoom(maxQueued))

/** The request for an archive, and how to send to its client. */
export type Recipient = Pick<Exchange, 'ctx' | 'request' | 'mayIdle' | 'takesPieces'>

/** An archive on its way to a client. Gives back its place once the client has it, is gone, or is too slow. */
export class OutgoingCar {
  readonly #to: Recipient
  readonly #place: StreamPlace
  /** Chunks until there are too many for a short archive. */
  #chunks: Uint8Array[] = []
  #bytes = 0
  #queue: SpillQueue | null = null
  #stream: ReadableStream<Uint8Array> | null = null

  constructor(to: Recipient, place: StreamPlace) {
    this.#to = to
    this.#place = place
  }

  /** Whether the client is gone. Further chunks are then discarded. */
  get isCancelled(): boolean {
    return this.#queue?.isCancelled ?? false
  }

  /** Whether the archive is queued: its response can then begin before all of it was pushed. */
  get isQueued(): boolean {
    return this.#queue !== null
  }

  /** Add a chunk, which belongs to the archive from now on. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    if (this.#queue === null && this.#bytes <= SHORT_BYTES) {
      this.#chunks.push(chunk)
      return
    }
    const queue = (this.#queue ??= this.#open())
    queue.push(chunk)
  }

  #open(): SpillQueue {
    const { ctx } = this.#to
    const queue = new SpillQueue({
      dir: ctx.config.dataDir,
      room: spillRoom(ctx),
      owner: clientHere().network,
      takesPieces: this.#to.takesPieces,
      onRead: () => this.#to.mayIdle(true),
      onEnd: () => {
        this.#place.leave()
        this.#to.mayIdle(false)
      },
    })
    this.#stream = queue.stream()
    for (const chunk of this.#chunks) queue.push(chunk)
    this.#chunks = []
    return queue
  }

  /** Call once everything was pushed. */
  end(): void {
    const queue = this.#queue
    if (queue === null) return this.#place.leave()
    queue.end()
    this.#place.handOver(() => queue.giveUp('too many other clients are slow'))
  }

  /** No more chunks will come, because of an error. What has begun to be sent breaks off. */
  fail(error: unknown): void {
    if (this.#queue === null) return this.#place.leave()
    this.#to.ctx.log.error('export aborted', { error })
    this.#queue.fail(error)
    this.end()
  }

  /** Discard everything. */
  drop(): void {
    if (this.#queue === null) this.#place.leave()
    else this.#queue.giveUp('the archive is not sent')
  }

  /** Call it once: when it is queued, or after `end`. */
  response(): Response {
    if (this.#stream === null)
      return carResponse(this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks))
    if (this.#to.request.method !== 'HEAD') return carResponse(this.#stream)
    this.drop()
    return carResponse(null)
  }
}

/** Returns a response with the headers of an archive. */
export function carResponse(body: Uint8Array | ReadableStream<Uint8Array> | null): Response {
  const init = { headers: { 'Content-Type': CAR_TYPE } }
  return body instanceof Uint8Array ? new WholeResponse(body, init) : new Response(body, init)
}
