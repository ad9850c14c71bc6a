/**
 * Places for responses that take memory while they are prepared and sent.
 *
 * A response has a place while the server works for it, and for a moment more, in which most clients have taken all of
 * it. One whose client is slower is a straggler: it gives its place to the next, and sends what is ready for it without
 * one. If there are too many stragglers, the oldest of the network that has most of them is cut off. A slow client
 * therefore neither holds a place nor is cut off for its slowness alone.
 */
import type { Client } from '../../base/fair-queue.ts'
import { Places, type PlaceBounds } from '../../base/places.ts'
import type { Config } from '../configuration/config.ts'
import { clientHere, resumed } from './request-scope.ts'

export interface StreamBounds extends Required<PlaceBounds> {
  /** How long a client has a place once its response only waits for it. */
  patienceMillis: number
  maxStragglers: number
}

export interface StreamPlace {
  /** The response is over. Further calls do nothing. */
  leave(): void
  /** From now on the response waits for its client alone. `cut` ends it; it calls `leave`. */
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
    // Without rate limits, no network has a limit of its own; the one in total guards memory.
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
   * Throws `NoPlace` after too long a wait, the reason of the request's signal if the client goes away, and what
   * `afterWait` throws. That is called if there was no place at once, because what the request may see can have changed
   * meanwhile.
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

  /** Returns the function that forgets it again. */
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
