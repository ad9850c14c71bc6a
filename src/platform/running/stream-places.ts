/**
 * Places for responses that take memory while they are prepared and sent.
 *
 * A response has a place while the server works on it, and for a moment longer, in which most clients receive the rest.
 * If its client is slower, the response becomes a straggler: it gives its place to the next response, and sends what is
 * ready without one. If there are too many stragglers, the oldest one of the network that has most of them is cut off.
 * So a slow client neither holds a place nor is cut off for its slowness alone.
 */
import type { Client } from '../../base/fair-queue.ts'
import { Places, type PlaceBounds } from '../../base/places.ts'
import type { Config } from '../configuration/config.ts'
import { clientHere, resumed } from './request-scope.ts'

export interface StreamBounds extends Required<PlaceBounds> {
  /** How long a response keeps its place once it only waits for its client. */
  patienceMillis: number
  maxStragglers: number
}

export interface StreamPlace {
  /** Gives up the place, because the response is over. Further calls do nothing. */
  leave(): void
  /** From now on, the response only waits for its client. `cut` has to end the response, and to call `leave`. */
  handOver(cut: () => void): void
}

export class StreamPlaces {
  readonly #places: Places
  /** By network, the oldest first: functions that cut them off. */
  readonly #stragglers = new Map<string, Set<() => void>>()
  #straggling = 0

  constructor(
    { rateLimit }: Pick<Config, 'rateLimit'>,
    readonly bounds: StreamBounds,
  ) {
    // Without rate limits, no network has a limit of its own; the total limit guards memory.
    this.#places = new Places({ ...bounds, ofNetwork: rateLimit.enabled ? bounds.ofNetwork : bounds.size })
  }

  get taken(): number {
    return this.#places.taken
  }

  get waiting(): number {
    return this.#places.waiting
  }

  get stragglers(): number {
    return this.#straggling
  }

  /**
   * Waits for a place. Throws `NoPlace` after too long a wait, the reason of the request's signal if the client goes
   * away, and what `afterWait` throws. `afterWait` is called if there was no place at once, because what the request
   * may see can have changed during the wait.
   */
  async enter(
    request: Pick<Request, 'signal'>,
    afterWait?: () => Promise<void>,
    client: Client = clientHere(),
  ): Promise<StreamPlace> {
    const leave = this.#places.takeFree(client) ?? (await this.#turn(client, request, afterWait))
    let timer: ReturnType<typeof setTimeout> | undefined
    let forget: (() => void) | null = null
    let isOver = false
    return {
      leave() {
        isOver = true
        clearTimeout(timer)
        forget?.()
        leave()
      },
      handOver: (cut) => {
        if (isOver) return
        const { network } = client
        timer = setTimeout(() => {
          forget = this.#straggle(network, cut)
          leave()
        }, this.bounds.patienceMillis)
      },
    }
  }

  async #turn(
    client: Client,
    request: Pick<Request, 'signal'>,
    afterWait: (() => Promise<void>) | undefined,
  ): Promise<() => void> {
    const leave = await this.#places.enter(client, () => request.signal)
    resumed()
    try {
      await afterWait?.()
    } catch (error) {
      leave()
      throw error
    }
    return leave
  }

  /** Adds a straggler. Returns the function that removes it. */
  #straggle(network: string, cut: () => void): () => void {
    const ofNetwork = this.#stragglers.get(network) ?? new Set()
    this.#stragglers.set(network, ofNetwork.add(cut))
    if (++this.#straggling > this.bounds.maxStragglers) this.#cutOne()
    return () => {
      if (!ofNetwork.delete(cut)) return
      this.#straggling--
      if (ofNetwork.size === 0) this.#stragglers.delete(network)
    }
  }

  #cutOne(): void {
    const [first, ...others] = this.#stragglers.values()
    const largest = others.reduce((most, set) => (set.size > most.size ? set : most), first!)
    const [oldest] = largest
    oldest!()
  }
}
