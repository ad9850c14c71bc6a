/** Keys of the service in matters of identity: the rotation key it holds in did:plc, and keys promised to accounts. */
import { perContext, type Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { newSigningSecret } from '../../platform/secrets/signing-keys.ts'
import { serverSecret } from '../../platform/secrets/vault.ts'
import { publishedSigningKey } from '../../protocol/did-document.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { curveOf, formatDidKey, signingKey, type Curve, type SigningKey } from '../../protocol/keys.ts'
import { isPlcDid } from '../../protocol/plc.ts'
import { makeAccountKey, signingKeyOf, type WrappedKey } from '../accounts/accounts.ts'
import { resolveDid } from './did-resolution.ts'
import { unresolvable } from './identity-lookup.ts'
import { findReservedKey, forgetReservedKey, insertReservedKey } from './reserved-key-store.ts'

const ROTATION_KEY_NAME = 'plc-rotation-key'

const rotationKeys = perContext((ctx) =>
  serverSecret(ctx.db, ctx.vault, ROTATION_KEY_NAME, () => newSigningSecret('p256')).then((secret) => signingKey('p256', secret)),
)

/** The rotation key that the service puts, below the account's own, into the identities it makes. */
export const serverRotationKey = (ctx: Context): Promise<SigningKey> => rotationKeys(ctx)

/** The key of ours that may change this DID: the account's own, or the service's. `null` when there is none. */
export async function heldRotationKey(ctx: Context, did: Did, rotationKeys: readonly string[]): Promise<SigningKey | null> {
  const ours = [await signingKeyOf(ctx, ctx.db, did), await serverRotationKey(ctx)]
  return ours.find((key) => key && rotationKeys.includes(formatDidKey(key.publicKey))) ?? null
}

/**
 * The curve for the key of an identity that comes from elsewhere: that of the key it names now, else P-256. A service that
 * has the old key cached looks for a newer one only when a token names the algorithm of the old one.
 *
 * Refuses when the directory does not answer. A did:web that does not may be one that is published with the new key.
 */
export async function curveFor(ctx: Context, did: Did, { live = false } = {}): Promise<Curve> {
  const resolution = await resolveDid(ctx, did, { live })
  if (!resolution.ok && resolution.fault === 'unreachable' && isPlcDid(did)) throw unresolvable(did, resolution.fault)
  const named = resolution.ok ? publishedSigningKey(resolution.document) : null
  return named === null ? 'p256' : curveOf(named)!
}

/** The key promised to a DID: the same one until an account takes it, or the promise lapses. Without a DID, a new one. */
export function reserveKey(ctx: Context, did: Did | null, curve: Curve): Promise<WrappedKey> {
  const made = makeAccountKey(ctx, curve)
  return ctx.db.transaction(async (tx) => {
    const kept = did && (await findReservedKey(tx, did))
    if (kept) return kept
    await insertReservedKey(tx, made, did, ctx.clock.now())
    return made
  })
}

/** In the transaction that creates the account: the key promised to its DID, which is nobody else's from now on. */
export async function takeReservedKey(tx: Tx, did: Did): Promise<WrappedKey | null> {
  const key = await findReservedKey(tx, did)
  if (key) await forgetReservedKey(tx, did)
  return key
}
