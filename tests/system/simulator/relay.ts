/** A relay: it follows the event stream at whatever node it reaches, and verifies what it gets. */
import type { Socket, SocketHandler } from '../../../src/http/endpoint.ts'
import { decode, decodeFirst } from '../../../src/protocol/cbor.ts'
import { actorNamed, Queue, type Actor } from './timeline.ts'
import type { Node, World } from './world.ts'

interface Body {
  seq: number
  /** Of a commit. */
  repo?: string
  /** Of everything else. */
  did?: string
  rev: string
  since?: string | null
  error?: string
  message?: string
}

export class Relay {
  readonly actor: Actor = actorNamed('relay')
  cursor = 0
  #isConnected = false
  /** The newest revision of each repository. */
  readonly #revs = new Map<string, string>()

  constructor(readonly world: World) {}

  get hasAll(): boolean {
    return this.cursor >= this.world.watch.newest
  }

  /** The newest revision that it has of a repository. */
  revOf(did: string): string | undefined {
    return this.#revs.get(did)
  }

  start(): void {
    this.cursor = this.world.watch.head
    this.#later(0)
  }

  #later(millis: number): void {
    this.world.timeline.schedule(millis, this.actor, () => this.#connect())
  }

  #connect(): void {
    const { world } = this
    const { serving, timeline } = world
    if (serving.length === 0) return this.#later(200)
    const node = timeline.random.of(serving)
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      this.#isConnected = false
      timeline.schedule(timeline.between(1, 400), this.actor, () => this.#connect())
    }
    timeline.schedule(5000, this.actor, () => {
      if (!this.#isConnected) over()
    })
    const opened = (handler: SocketHandler) => {
      if (isOver) handler.closed()
      else this.#opened(node, handler, over)
    }
    node.subscribe(this.cursor, opened, over)
  }

  #opened(node: Node, handler: SocketHandler, over: () => void): void {
    const { timeline } = this.world
    const queue = new Queue(timeline)
    let isClosed = false
    const close = () => {
      if (isClosed) return
      isClosed = true
      node.sockets.delete(entry)
      over()
    }
    const entry = { lose: close }
    node.sockets.add(entry)
    this.#isConnected = true
    const socket: Socket = {
      send: (frame) => {
        queue.schedule(timeline.now + timeline.between(0.1, 5), this.actor, () => {
          if (!isClosed) this.#receive(node, frame)
        })
        return true
      },
      bufferedBytes: () => 0,
      batch: (work) => work(),
      // After what was sent before.
      close: () => queue.schedule(timeline.now, this.actor, close),
      cut: close,
    }
    timeline.schedule(0, node.actor, () => handler.open(socket))
    // It moves on now and then.
    timeline.schedule(timeline.between(500, 8000), node.actor, () => {
      if (isClosed) return
      handler.closed()
      close()
    })
  }

  /** If no node lives that has sent an event which the database has lost, nobody knows of it but the relay. */
  #isAhead(node: Node): void {
    const { world } = this
    // It follows the machine that serves, and meets another one that does not know yet that it was replaced.
    if (world.pair?.isFenced(node) === true) return
    if (!world.befallen.includes('failover'))
      world.fail(`${node.name} tells the relay that event ${this.cursor}, which it has, is in the future`)
    world.note('relay', `has event ${this.cursor}, which is lost, and begins anew`)
    this.cursor = world.watch.head
  }

  #receive(node: Node, frame: Uint8Array): void {
    const { world } = this
    const { value, rest } = decodeFirst(frame)
    const { op, t } = value as { op: number; t?: string }
    const body = decode(rest) as unknown as Body
    if (op === -1) {
      if (body.error === 'FutureCursor') this.#isAhead(node)
      return
    }
    if (t === '#info') return
    if (body.seq <= this.cursor)
      return world.fail(`${node.name} sends event ${body.seq} after ${this.cursor} to the relay`)
    world.watch.received(body.seq, this.cursor, frame, node)
    this.cursor = body.seq
    if ((t === '#commit' || t === '#sync') && world.pair?.isFenced(node) !== true) this.#requireNewer(node, t, body)
  }

  /**
   * Relays drop what is older than what they have, and mistrust a commit that follows something else. After a failover,
   * events may come again, and others before an account is announced.
   */
  #requireNewer(node: Node, type: string, { repo, did = repo!, rev, since }: Body): void {
    const { world } = this
    const before = this.#revs.get(did) ?? null
    if (before !== null && !world.befallen.includes('failover')) {
      if (rev < before || (rev === before && type === '#commit'))
        world.fail(`${node.name} sends the relay revision ${rev} of ${did} after ${before}`)
      if (type === '#commit' && since !== before)
        world.fail(`${node.name} sends the relay a commit of ${did} that follows ${since}, and not ${before}`)
    }
    if (before === null || rev > before) this.#revs.set(did, rev)
  }
}
