/**
 * Keys that the service holds and that may change identities: its own rotation key in did:plc, and the keys of
 * accounts.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newSigningSecret, openSigningKey } from '../../../platform/secrets/signing-keys.ts'
import { findSecrets, putSecret, serverSecret } from '../../../platform/secrets/vault.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { curveOf, formatDidKey, signingKey, type Curve, type SigningKey } from '../../../protocol/keys.ts'
import { settledKeyOf } from '../account-keys/account-keys.ts'

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

/**
 * Names of the secrets that hold the rotation keys of servers whose accounts have moved here: this prefix and the
 * did:key.
 */
const FORMER_KEY_PREFIX = `${ROTATION_KEY_NAME} `
/** Most rotation keys that are looked up, more than any identity has. */
const MAX_ROTATION_KEYS = 16

/**
 * Store the rotation key of a server whose accounts move here, because their identities continue to name it. Throws if
 * the secret is not a scalar of the curve. Returns the key as a did:key.
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
 * the rotation key of a server whose accounts have moved here. Returns null if it holds none of them. Throws
 * `ServiceUnavailable` while the account's own key is being replaced.
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
 * Whether the rotation keys of an identity include the account's own signing key but not the service's rotation key. A
 * wallet made such an identity: the wallet's keys rank above the service's, and only the wallet changes the identity.
 * Throws `ServiceUnavailable` while the account's own key is being replaced.
 */
export async function isOfWallet(ctx: Context, did: Did, rotationKeys: readonly string[]): Promise<boolean> {
  const own = await settledKeyOf(ctx, ctx.db, did)
  const isListed = (key: SigningKey | null) => key !== null && rotationKeys.includes(formatDidKey(key.publicKey))
  if (!isListed(own) || isListed(await serverRotationKey(ctx))) return false
  return (await formerRotationKey(ctx, rotationKeys)) === null
}

/**
 * Returns the key with which the service may change an identity by itself; null if it has none. If a wallet made the
 * identity and its key ranks higher, only the wallet changes it. Throws `ServiceUnavailable` while the account's own
 * key is being replaced.
 */
export async function identitySigner(
  ctx: Context,
  did: Did,
  rotationKeys: readonly string[],
): Promise<SigningKey | null> {
  const candidates = (await isOfWallet(ctx, did, rotationKeys)) ? rotationKeys.slice(0, 1) : rotationKeys
  return heldRotationKey(ctx, did, candidates)
}
