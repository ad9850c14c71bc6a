/** The keys that clients publish, in their metadata or at their `jwks_uri`. */
import { perContext, type Context } from '../../../platform/context.ts'
import { fetchDocument } from '../../../platform/network/json-document.ts'
import { KeySets, type Jwk } from '../../../platform/network/key-sets.ts'
import type { ClientMetadata } from '../../../protocol/client-metadata.ts'

/** The key that a confidential client authenticated with. A session stays bound to the first one. */
export interface ClientKey {
  kid: string
  alg: string
  jkt: string
}

const clientKeySets = perContext((ctx) => {
  const { clientJwksCacheTtlSecs: ttlSecs, clientJwksRefetchCooldownSecs: cooldownSecs } = ctx.config.oauth
  return new KeySets({ clock: ctx.clock, ttlSecs, cooldownSecs, fetch: (url) => fetchDocument(ctx, url) })
})

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
  const found = await clientKeySets(ctx).find(jwksUri, has)
  return found.ok ? found.key : null
}
