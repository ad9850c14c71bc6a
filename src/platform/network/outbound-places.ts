/**
 * Places for requests to other services. The runtime has 256 connections for all of them, and a service that a stranger
 * chose, or a client that sends or reads slowly, may keep one for a minute. So each kind of target has a part of them,
 * in which clients take turns. A request that has to wait ends an older one of the network that has most: strangers who
 * hold every place keep none that others need.
 */
import { NoPlace, Places } from '../../base/places.ts'
import { clientHere } from '../running/request-scope.ts'
import { LookupsFull } from './resolver.ts'

const MAX_WAITING = 1024
/** A request keeps its place for this long, however many wait. */
const KEPT_MILLIS = 3000
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
   * Returns the function that gives the place back. `cut` is called if others need it, and calls that function. Throws
   * `LookupsFull` if too many wait, and the reason of the signal.
   */
  async enter(signal: AbortSignal, cut: () => void): Promise<() => void> {
    const client = clientHere()
    this.#makeRoom()
    const timer = this.#isFull ? setInterval(() => this.#makeRoom(), LOOK_MILLIS) : undefined
    try {
      const leave = await this.#places.enter(client, () => signal)
      const holder = { network: client.network, since: performance.now(), cut }
      this.#holders.add(holder)
      return () => {
        this.#holders.delete(holder)
        leave()
      }
    } catch (error) {
      throw error instanceof NoPlace ? new LookupsFull('too many requests to other services') : error
    } finally {
      clearInterval(timer)
    }
  }

  get #isFull(): boolean {
    return this.#places.taken >= this.size
  }

  /** End the oldest request of the network that has most, unless it has just begun. The server itself is spared. */
  #makeRoom(): void {
    if (!this.#isFull) return
    const byNetwork = Map.groupBy(this.#holders, ({ network }) => network)
    byNetwork.delete('')
    let largest: readonly Holder[] = []
    for (const holders of byNetwork.values()) if (holders.length > largest.length) largest = holders
    const [oldest] = largest
    if (oldest !== undefined && performance.now() - oldest.since >= KEPT_MILLIS) oldest.cut()
  }
}
