/**
 * A cache of key sets (RFC 7517) that others publish at a URL. A key that is not in the cached set triggers another
 * fetch, but not during the cooldown after the previous one. A set that is older than its time to live is never used,
 * so a key that was taken out is trusted no longer than that.
 */
import { BoundedCache } from '../../base/bounded-cache.ts'
import { SingleFlight } from '../../base/single-flight.ts'
import type { Clock } from '../running/clock.ts'
import type { DocumentOutcome } from './json-document.ts'

export type Jwk = Readonly<Record<string, unknown>>

/** `unknown`: the set has no such key. `unreachable`: there is no set that may be used. */
export type KeyOutcome = { ok: true; key: Jwk } | { ok: false; fault: 'unknown' | 'unreachable' }

interface KeptSet {
  /** Of the last successful fetch; null if there was none. `readAt` is on the monotonic clock. */
  set: { keys: readonly Jwk[]; readAt: number } | null
  /** When the last fetch began, successful or not, on the monotonic clock. */
  triedAt: number
}

/** Memory limit of the cache. */
const MAX_KEPT_BYTES = 32 * 1024 ** 2
/** Estimated memory per key in addition to its JSON text. Without it, a set of many empty keys would count as small. */
const KEY_BYTES = 256

const bytesOf = (url: string, { set }: KeptSet): number =>
  KEY_BYTES * (1 + (set?.keys.length ?? 0)) + url.length + JSON.stringify(set?.keys ?? []).length

export interface KeySetOptions {
  clock: Clock
  ttlSecs: number
  /** Minimum time between the starts of two fetches from one URL. 0: no limit. */
  cooldownSecs: number
  fetch(url: string): Promise<DocumentOutcome>
}

export class KeySets {
  readonly #kept = new BoundedCache<KeptSet>(MAX_KEPT_BYTES, bytesOf)
  readonly #fetches = new SingleFlight<string, readonly Jwk[] | null>()

  constructor(readonly options: KeySetOptions) {}

  /**
   * Returns the key that `pick` chooses from the set at the URL. Callers who miss at the same time share one fetch.
   * Throws what `fetch` throws.
   */
  async find(url: string, pick: (keys: readonly Jwk[]) => Jwk | null): Promise<KeyOutcome> {
    const { clock, ttlSecs, cooldownSecs } = this.options
    const now = clock.monotonic()
    const kept = this.#kept.get(url)
    const fresh = kept?.set && now - kept.set.readAt < ttlSecs * 1000 ? kept.set : null
    const known = fresh && pick(fresh.keys)
    if (known) return { ok: true, key: known }
    const withoutFetch: KeyOutcome = { ok: false, fault: fresh ? 'unknown' : 'unreachable' }
    const isCooling = kept !== undefined && now - kept.triedAt < cooldownSecs * 1000
    if (isCooling && this.#fetches.running(url) === undefined) return withoutFetch
    const keys = await this.#fetches.run(url, () => this.#fetch(url))
    if (keys === null) return withoutFetch
    const key = pick(keys)
    return key ? { ok: true, key } : { ok: false, fault: 'unknown' }
  }

  /** Returns null if the set cannot be fetched; the previous one is kept until it expires. */
  async #fetch(url: string): Promise<readonly Jwk[] | null> {
    const { clock, fetch } = this.options
    const triedAt = clock.monotonic()
    const fetched = await fetch(url)
    const given = fetched.ok ? (fetched.document as { keys?: unknown } | null)?.keys : undefined
    const keys = Array.isArray(given)
      ? given.filter((key): key is Jwk => typeof key === 'object' && key !== null)
      : null
    this.#kept.set(url, {
      set: keys === null ? (this.#kept.get(url)?.set ?? null) : { keys, readAt: clock.monotonic() },
      triedAt,
    })
    return keys
  }
}
