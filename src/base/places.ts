import { FairQueue, type Client } from './fair-queue.ts'

export interface PlaceBounds {
  /** Places in all. */
  size: number
  /** Places that one network may have; all of them if omitted. */
  ofNetwork?: number
  /** Most clients that wait. Beyond that, the network that has most of them loses its newest. */
  maxWaiting: number
  /** Longest wait; without end if omitted. */
  waitMillis?: number
}

/** Thrown to clients that wait for too long, or if too many wait. */
export class NoPlace extends Error {}

interface Waiting {
  client: Client
  start(leave: () => void): void
  refuse(error: unknown): void
}

/** A bounded number of places. Clients that wait for one take turns, as in `FairQueue`. */
export class Places {
  readonly #waiting = new FairQueue<Waiting>()
  /** One for each place that is taken. */
  readonly #holders = new Set<{ readonly client: Client }>()
  readonly #ofNetwork: number

  constructor(readonly bounds: PlaceBounds) {
    this.#ofNetwork = bounds.ofNetwork ?? bounds.size
  }

  get taken(): number {
    return this.#holders.size
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Takes a place. Resolves to the function that gives it back; only its first call counts. Throws `NoPlace`, or the
   * reason of the signal that `gone` returns if that aborts before there is a place. `gone` is called only if the
   * client has to wait. The fields of `client` are read only while places are scarce.
   */
  async enter(client: Client, gone?: () => AbortSignal): Promise<() => void> {
    return this.takeFree(client) ?? this.#turn(client, gone?.())
  }

  /** Take a free place. Returns null if there is none, or if the network has used up its own. */
  takeFree(client: Client): (() => void) | null {
    return this.#admits(client) ? this.#take(client) : null
  }

  async run<T>(client: Client, work: () => Promise<T>): Promise<T> {
    const leave = await this.enter(client)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  #admits(client: Client): boolean {
    if (this.taken >= this.bounds.size) return false
    return this.taken < this.#ofNetwork || (this.#takenByNetwork().get(client.network) ?? 0) < this.#ofNetwork
  }

  #takenByNetwork(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { client } of this.#holders) counts.set(client.network, (counts.get(client.network) ?? 0) + 1)
    return counts
  }

  #take(client: Client): () => void {
    const holder = { client }
    this.#holders.add(holder)
    return () => {
      if (this.#holders.delete(holder)) this.#startNext()
    }
  }

  #startNext(): void {
    if (this.#waiting.size === 0) return
    const counts = this.#takenByNetwork()
    const next = this.#waiting.shift((network) => (counts.get(network) ?? 0) < this.#ofNetwork)
    next?.start(this.#take(next.client))
  }

  async #turn(client: Client, signal: AbortSignal | undefined): Promise<() => void> {
    signal?.throwIfAborted()
    const { maxWaiting, waitMillis } = this.bounds
    const { promise, resolve, reject } = Promise.withResolvers<() => void>()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const waiting: Waiting = {
      client,
      start(leave) {
        end()
        resolve(leave)
      },
      refuse(error) {
        end()
        reject(error)
      },
    }
    const giveUp = (error: unknown) => {
      this.#waiting.delete(client, waiting)
      waiting.refuse(error)
    }
    const abort = () => giveUp(signal!.reason)
    const timer =
      waitMillis === undefined
        ? undefined
        : setTimeout(() => giveUp(new NoPlace('timed out waiting in the queue')), waitMillis)
    signal?.addEventListener('abort', abort)
    this.#waiting.push(client, waiting)
    if (this.#waiting.size > maxWaiting) this.#waiting.dropLast()?.refuse(new NoPlace('the queue is full'))
    return promise
  }
}
