/**
 * The keys of trusted issuers: fixed in the configuration, or published by the issuer at a URL that the configuration
 * names.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { TrustedIssuer } from '../../../platform/configuration/trusted-issuers.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { fetchDocument } from '../../../platform/network/json-document.ts'
import { KeySets, type Jwk } from '../../../platform/network/key-sets.ts'
import { publicKeyFor, type ForeignAlgorithm } from '../../../protocol/foreign-keys.ts'

/** Cached apart from the key sets of OAuth clients: strangers choose those, and must not displace an issuer's keys. */
const issuerKeySets = perContext((ctx) => {
  const { jwksCacheTtlSecs: ttlSecs, jwksRefetchCooldownSecs: cooldownSecs } = ctx.config.agentAuth
  return new KeySets({ clock: ctx.clock, ttlSecs, cooldownSecs, fetch: (url) => fetchKeySet(ctx, url) })
})

async function fetchKeySet({ upstream, log }: Context, url: string) {
  const fetched = await fetchDocument({ outbound: upstream, log }, url, null)
  if (!fetched.ok) log.warn('could not fetch the keys of a trusted issuer', { url, reason: fetched.reason })
  return fetched
}

/** `unknown`: the issuer has no key for this token. `unreachable`: its keys cannot be read at the moment. */
export type IssuerKeys = { ok: true; keys: readonly KeyObject[] } | { ok: false; fault: 'unknown' | 'unreachable' }

/**
 * Returns the keys that may have signed a token of the issuer. Fixed keys have no ids, so all of them are returned,
 * whatever `kid` the token names. Throws `LookupsFull` when too many names are being looked up.
 */
export async function keysOfIssuer(
  ctx: Context,
  { keys, algorithm }: TrustedIssuer,
  kid: unknown,
): Promise<IssuerKeys> {
  if (keys.source === 'fixed') return { ok: true, keys: keys.publicKeysPem.map((pem) => createPublicKey(pem)) }
  if (kid !== undefined && typeof kid !== 'string') return { ok: false, fault: 'unknown' }
  const found = await issuerKeySets(ctx).find(keys.url, (set) => keyNamed(set, kid, algorithm))
  return found.ok ? { ok: true, keys: [publicKeyFor(found.key, algorithm)!] } : found
}

/** Returns the key with this id; without an id, the only key that there is. Keys for other purposes are left out. */
function keyNamed(set: readonly Jwk[], kid: string | undefined, algorithm: ForeignAlgorithm): Jwk | null {
  const named = kid === undefined ? set : set.filter((key) => key['kid'] === kid)
  const usable = named.filter((key) => publicKeyFor(key, algorithm) !== null)
  return kid === undefined && usable.length > 1 ? null : (usable[0] ?? null)
}
