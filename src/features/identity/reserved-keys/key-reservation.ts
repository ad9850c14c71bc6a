/** Reserves signing keys for future accounts, whose identities name the key before the account exists. */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { publishedSigningKey } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { curveOf, type Curve } from '../../../protocol/keys.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { makeAccountKey } from '../account-keys/account-keys.ts'
import { resolveDid, unresolvable } from '../identity/identity.ts'
import { findReservedKey, forgetReservedKey, insertReservedKey } from './reserved-key-store.ts'

/**
 * Returns the curve for the new signing key of an identity that moves here: the curve of the key that its DID document
 * names now, else P-256. The curve is kept because a service that has the old key cached fetches the new key only if a
 * token names the algorithm of the old one.
 *
 * `live` ignores the cached document. A did:web that does not respond gets P-256, because its owner may publish it only
 * once the new key is known. Throws `UpstreamFailure` if the PLC directory does not respond, and `LookupsFull` if too
 * many names are being looked up.
 */
export async function curveFor(ctx: Context, did: Did, { live = false } = {}): Promise<Curve> {
  const resolution = await resolveDid(ctx, did, { live })
  if (!resolution.ok && resolution.fault === 'unreachable' && isPlcDid(did)) throw unresolvable(did, resolution.fault)
  const named = resolution.ok ? publishedSigningKey(resolution.document) : null
  return named === null ? 'p256' : curveOf(named)!
}

/**
 * Returns the key reserved for a DID. It stays the same until an account takes it or it expires. If `did` is null, the
 * key is new.
 */
export function reserveKey(ctx: Context, did: Did | null, curve: Curve): Promise<WrappedKey> {
  const made = makeAccountKey(ctx, curve)
  return ctx.db.transaction(async (tx) => {
    const kept = did && (await findReservedKey(tx, did))
    if (kept) return kept
    await insertReservedKey(tx, made, did, ctx.clock.now())
    return made
  })
}

/**
 * Returns the key reserved for a DID and ends the reservation, or null if none is reserved. Call it in the transaction
 * that creates the account.
 */
export async function takeReservedKey(tx: Tx, did: Did): Promise<WrappedKey | null> {
  const key = await findReservedKey(tx, did)
  if (key) await forgetReservedKey(tx, did)
  return key
}
