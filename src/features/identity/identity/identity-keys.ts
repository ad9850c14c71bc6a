/**
 * Identity keys that the service holds: its rotation key in did:plc, and signing keys reserved for accounts to come.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newSigningSecret, openSigningKey, type WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { findSecrets, putSecret, serverSecret } from '../../../platform/secrets/vault.ts'
import { publishedSigningKey } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { curveOf, formatDidKey, signingKey, type Curve, type SigningKey } from '../../../protocol/keys.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { makeAccountKey, settledKeyOf } from '../account-keys/account-keys.ts'
import { resolveDid } from './did-resolution.ts'
import { unresolvable } from './identity-lookup.ts'
import { findReservedKey, forgetReservedKey, insertReservedKey } from './reserved-key-store.ts'

const ROTATION_KEY_NAME = 'plc-rotation-key'

const rotationKeys = perContext((ctx) =>
  serverSecret(ctx.db, ctx.vault, ROTATION_KEY_NAME, () => newSigningSecret('p256')).then((secret) =>
    signingKey('p256', secret),
  ),
)

/**
 * Returns the rotation key that the service puts into the identities it creates, below the recovery keys of account and
 * operator.
 */
export const serverRotationKey = (ctx: Context): Promise<SigningKey> => rotationKeys(ctx)

/** Names of the rotation keys that servers had whose accounts have moved here: a prefix and the did:key. */
const FORMER_KEY_PREFIX = `${ROTATION_KEY_NAME} `
/** The limit of a PLC operation, and more than any identity has. */
const MAX_ROTATION_KEYS = 16

/**
 * Keep the rotation key of a server whose accounts move here: it keeps changing their identities. Throws if the secret
 * is no scalar of the curve. Returns the key as a did:key.
 */
export async function keepFormerRotationKey(
  { vault }: Pick<Context, 'vault'>,
  tx: Tx,
  curve: Curve,
  secret: Uint8Array,
): Promise<string> {
  const name = formatDidKey(openSigningKey(curve, secret).publicKey)
  await putSecret(tx, vault, FORMER_KEY_PREFIX + name, secret)
  return name
}

async function formerRotationKey({ db, vault }: Context, rotationKeys: readonly string[]): Promise<SigningKey | null> {
  const names = rotationKeys.slice(0, MAX_ROTATION_KEYS)
  const found = await findSecrets(
    db,
    vault,
    names.map((name) => FORMER_KEY_PREFIX + name),
  )
  for (const name of names) {
    const secret = found.get(FORMER_KEY_PREFIX + name)
    if (secret !== undefined) return openSigningKey(curveOf(name)!, secret)
  }
  return null
}

/**
 * Returns the key in `rotationKeys` that the service holds: the account's own, else the service's rotation key, else
 * one of a server whose accounts have moved here. Returns null if it holds none of them. Throws `ServiceUnavailable`
 * while the account's own key is being replaced.
 */
export async function heldRotationKey(
  ctx: Context,
  did: Did,
  rotationKeys: readonly string[],
): Promise<SigningKey | null> {
  const ours = [await settledKeyOf(ctx, ctx.db, did), await serverRotationKey(ctx)]
  const held = ours.find((key) => key && rotationKeys.includes(formatDidKey(key.publicKey)))
  return held ?? formerRotationKey(ctx, rotationKeys)
}

/**
 * Whether an identity ranks the account's own signing key among those that may change it, and not the service's
 * rotation key. Such an identity was made by a wallet: its keys stand above the service's, and it changes by the
 * wallet's hand. Throws `ServiceUnavailable` while the account's own key is being replaced.
 */
export async function isOfWallet(ctx: Context, did: Did, rotationKeys: readonly string[]): Promise<boolean> {
  const own = await settledKeyOf(ctx, ctx.db, did)
  const isListed = (key: SigningKey | null) => key !== null && rotationKeys.includes(formatDidKey(key.publicKey))
  if (!isListed(own) || isListed(await serverRotationKey(ctx))) return false
  return (await formerRotationKey(ctx, rotationKeys)) === null
}

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
