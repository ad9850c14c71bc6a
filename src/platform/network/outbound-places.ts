/**
 * Places for requests to other services. The runtime has 256 connections for all of them, and a service that a stranger
 * chose, or a client that sends or reads slowly, may keep one for a minute. So each kind of target has a part of them,
 * in which clients take turns. A request that has to wait ends an older one of the network that has most: strangers who
 * hold every place keep none that others need. Networks that have no more than their share are left their places for
 * longer: if a service is slow for all clients, ending requests would only mean that it answers none of them.
 */
import type { Client } from '../../base/fair-queue.ts'
import { NoPlace, Places } from '../../base/places.ts'
import { clientHere } from '../running/request-scope.ts'
import { LookupsFull } from './resolver.ts'

const MAX_WAITING = 1024
/** A request keeps its place for this long, however many wait. */
const KEPT_MILLIS = 3000
/** The same, if its network has at most one place more than the network of the request that waits. */
const SHARED_MILLIS = 8000
/** How often a client that waits looks for a request to end. */
const LOOK_MILLIS = 250

interface Holder {
  readonly network: string
  readonly since: number
  cut(): void
}

export class OutboundPlaces {
  readonly #places: Places
  /** In the order in which they came. */
  readonly #holders = new Set<Holder>()

  constructor(readonly size: number) {
    this.#places = new Places({ size, maxWaiting: MAX_WAITING })
  }

  /**
   * Returns the function that gives the place back, or a promise of it if there is none free. `cut` is called if others
   * need it, and calls that function. Throws
   * `LookupsFull` if too many wait, and the reason of the signal.
   */
  enter(signal: AbortSignal, cut: () => void): (() => void) | Promise<() => void> {
    const client = clientHere()
    this.#makeRoom(client)
    const leave = this.#places.takeFree(client)
    return leave === null ? this.#turn(client, signal, cut) : this.#held(client, cut, leave)
  }

  async #turn(client: Client, signal: AbortSignal, cut: () => void): Promise<() => void> {
    const timer = setInterval(() => this.#makeRoom(client), LOOK_MILLIS)
    try {
      return this.#held(client, cut, await this.#places.enter(client, () => signal))
    } catch (error) {
      throw error instanceof NoPlace ? new LookupsFull('too many requests to other services') : error
    } finally {
      clearInterval(timer)
    }
  }

  #held({ network }: Client, cut: () => void, leave: () => void): () => void {
    const holder = { network, since: performance.now(), cut }
    this.#holders.add(holder)
    return () => {
      this.#holders.delete(holder)
      leave()
    }
  }

  get #isFull(): boolean {
    return this.#places.taken >= this.size
  }

  /**
   * End the oldest request of the network that has most, unless it began so recently that it keeps its place. The
   * server itself is spared.
   */
  #makeRoom(waiting: Client): void {
    if (!this.#isFull) return
    const byNetwork = Map.groupBy(this.#holders, ({ network }) => network)
    const own = byNetwork.get(waiting.network)?.length ?? 0
    byNetwork.delete('')
    let largest: readonly Holder[] = []
    for (const holders of byNetwork.values()) if (holders.length > largest.length) largest = holders
    const [oldest] = largest
    const keptMillis = largest.length > own + 1 ? KEPT_MILLIS : SHARED_MILLIS
    if (oldest !== undefined && performance.now() - oldest.since >= keptMillis) oldest.cut()
  }
}
