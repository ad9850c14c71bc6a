/**
 * A cache of the keys that clients publish at their `jwks_uri`. An unknown `kid` triggers another fetch, but not during
 * the cooldown after the previous one. After a failed fetch, a client whose cached keys have expired has no keys until
 * the cooldown ends.
 */
import { perContext, type Context } from '../../platform/context.ts'
import { SingleFlight } from '../../base/single-flight.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import type { ClientMetadata } from '../../protocol/client-metadata.ts'
import { fetchDocument } from './client-documents.ts'

type Jwk = Record<string, unknown>

interface KeySet {
  keys: readonly Jwk[]
  /** When `keys` were fetched, on the monotonic clock; null if no fetch has succeeded. */
  readAt: number | null
  /** When the last fetch ended, successful or not, on the monotonic clock. */
  triedAt: number
}

/** Memory limit of the cache. */
const MAX_KEPT_BYTES = 32 * 1024 ** 2
/** Estimated memory per key in addition to its JSON text. Without it, a set of many empty keys would count as small. */
const KEY_BYTES = 256

const bytesOf = (jwksUri: string, { keys }: KeySet): number => KEY_BYTES * (1 + keys.length) + jwksUri.length + JSON.stringify(keys).length

const state = perContext(() => ({ sets: new BoundedCache<KeySet>(MAX_KEPT_BYTES, bytesOf), fetches: new SingleFlight<string, KeySet>() }))

/**
 * Returns the client's key with the id `kid`. Null if the client is public, if it does not publish such a key, or if
 * its keys cannot be fetched. Throws `LookupsFull` when too many names are being looked up.
 */
export async function keyOfClient(ctx: Context, client: ClientMetadata, kid: string): Promise<Jwk | null> {
  if (client.authentication.method === 'none') return null
  const { jwks, jwksUri } = client.authentication
  const has = (keys: readonly object[]) => (keys as readonly Jwk[]).find((key) => key.kid === kid) ?? null
  if (jwks !== null) return has(jwks)
  if (jwksUri === null) return null
  const kept = await keySet(ctx, jwksUri, () => false)
  return has(kept.keys) ?? has((await keySet(ctx, jwksUri, (set) => has(set.keys) === null)).keys)
}

async function keySet(ctx: Context, jwksUri: string, isOutdated: (set: KeySet) => boolean): Promise<KeySet> {
  const { sets, fetches } = state(ctx)
  const { clientJwksCacheTtlSecs: ttlSecs, clientJwksRefetchCooldownSecs: cooldownSecs } = ctx.config.oauth
  const now = ctx.clock.monotonic()
  const kept = sets.get(jwksUri)
  const isFresh = kept !== undefined && kept.readAt !== null && now - kept.readAt < ttlSecs * 1000
  if (kept && isFresh && !isOutdated(kept)) return kept
  if (kept && now - kept.triedAt < cooldownSecs * 1000) return isFresh ? kept : { ...kept, keys: [] }
  return fetches.run(jwksUri, () => readKeySet(ctx, jwksUri, isFresh ? kept : undefined))
}

async function readKeySet(ctx: Context, jwksUri: string, kept: KeySet | undefined): Promise<KeySet> {
  const fetched = await fetchDocument(ctx, jwksUri)
  const now = ctx.clock.monotonic()
  const keys = fetched.ok ? (fetched.document as { keys?: unknown } | null)?.keys : undefined
  const read: KeySet = Array.isArray(keys)
    ? { keys: keys.filter((key): key is Jwk => typeof key === 'object' && key !== null), readAt: now, triedAt: now }
    : { keys: kept?.keys ?? [], readAt: kept?.readAt ?? null, triedAt: now }
  state(ctx).sets.set(jwksUri, read)
  return read
}
