/**
 * Places for requests to other services. The runtime has 256 connections for all of them, and a service that a stranger
 * chose, or a client that sends or reads slowly, may hold one for a minute. So each kind of target has a part of the
 * connections, for which clients take turns. A request that has to wait ends an older one of the network that has most,
 * so strangers cannot keep others out by holding every place. Networks with no more than their share keep their places
 * for longer: if a service is slow for all clients, ending requests would only mean that it answers none of them.
 */
import type { Client } from '../../base/fair-queue.ts'
import { NoPlace, Places } from '../../base/places.ts'
import { clientHere } from '../running/request-scope.ts'
import { LookupsFull } from './resolver.ts'

const MAX_WAITING = 1024
/** A request keeps its place for this long, however many wait. */
const KEPT_MILLIS = 3000
/** The same, if its network has at most one place more than the network of the waiting request. */
const SHARED_MILLIS = 8000
/** How often a waiting request looks for a request to end. */
const LOOK_MILLIS = 250

/** A request lost its place to others, or found none in time, which says nothing about the service it was to ask. */
export const placesFull = () => new LookupsFull('too many requests to other services are under way')

interface Holder {
  readonly client: Pick<Client, 'network'>
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
   * Takes a place. Returns the function that gives it back, or a promise of that function if no place is free. `cut` is
   * called if others need the place, and has to give it back. `outlives`: the request on whose behalf this runs may end
   * earlier. Throws `LookupsFull` if too many requests wait, and the reason of the signal.
   */
  enter(signal: AbortSignal, cut: () => void, outlives: boolean): (() => void) | Promise<() => void> {
    const client = clientHere()
    this.#makeRoom(client)
    const leave = this.#places.takeFree(client)
    if (leave === null) return this.#turn(client, signal, cut)
    // The network of a client is unknown once its request has ended. Others are asked only while places are scarce.
    return this.#held(outlives ? { network: client.network } : client, cut, leave)
  }

  async #turn(client: Client, signal: AbortSignal, cut: () => void): Promise<() => void> {
    const timer = setInterval(() => this.#makeRoom(client), LOOK_MILLIS)
    try {
      const leave = await this.#places.enter(client, () => signal)
      return this.#held({ network: client.network }, cut, leave)
    } catch (error) {
      throw error instanceof NoPlace ? placesFull() : error
    } finally {
      clearInterval(timer)
    }
  }

  #held(client: Holder['client'], cut: () => void, leave: () => void): () => void {
    const holder = { client, since: performance.now(), cut }
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
    const byNetwork = Map.groupBy(this.#holders, ({ client }) => client.network)
    const own = byNetwork.get(waiting.network)?.length ?? 0
    byNetwork.delete('')
    let largest: readonly Holder[] = []
    for (const holders of byNetwork.values()) if (holders.length > largest.length) largest = holders
    const [oldest] = largest
    const keptMillis = largest.length > own + 1 ? KEPT_MILLIS : SHARED_MILLIS
    if (oldest !== undefined && performance.now() - oldest.since >= keptMillis) oldest.cut()
  }
}
