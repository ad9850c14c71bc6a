/**
 * The door of account keys: the signing keys of accounts, generated here, stored wrapped, unwrapped on use, and the
 * holds on signing.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Beside, Reader, Tx } from '../../../platform/database/database.ts'
import { newSigningSecret, openSigningKey, type WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { curveOf, formatDidKey, type Curve, type SigningKey } from '../../../protocol/keys.ts'
import { statusOf, type AccountStatus } from '../../../protocol/account-status.ts'
import { requireActive } from '../accounts/accounts.ts'
import { effectiveQuota } from '../quotas/quotas.ts'
import { findSigner, updateSigningKey, type AccountSigner } from './account-key-store.ts'
import { SigningHeld } from './signing-hold.ts'
import { requireValid, type Revalidation } from '../../../http/revalidation.ts'

export {
  holdSigning,
  onceSettled,
  releaseSigning,
  SETTLE_KEY_STEP,
  settledTransaction,
  SigningHeld,
} from './signing-hold.ts'

/** Maximum number of unwrapped keys in memory. */
const MAX_SIGNING_KEYS = 20_000

const signingKeys = perContext(() => new BoundedCache<SigningKey>(MAX_SIGNING_KEYS))

/** Returns a new key pair for an account, ready to be stored. */
export const makeAccountKey = (ctx: Pick<Context, 'vault'>, curve: Curve): WrappedKey =>
  wrapAccountKey(ctx, curve, newSigningSecret(curve))

/** Returns a key pair that another server made, ready to be stored. Throws if the secret is no scalar of the curve. */
export function wrapAccountKey({ vault }: Pick<Context, 'vault'>, curve: Curve, secret: Uint8Array): WrappedKey {
  return { signingKey: formatDidKey(openSigningKey(curve, secret).publicKey), wrapped: vault.wrap(secret) }
}

/** Returns the key that signs the account's repository and service tokens, or null if there is no such account. */
export async function signingKeyOf(ctx: Context, reader: Reader, did: Did): Promise<SigningKey | null> {
  const signer = await findSigner(reader, did)
  return signer && unwrapped(ctx, signer)
}

/** Returns what is wrong with the stored key, in words; null if nothing is, or if there is no such account. */
export async function signingKeyFault({ vault }: Context, reader: Reader, did: Did): Promise<string | null> {
  const signer = await findSigner(reader, did)
  if (signer === null) return null
  const curve = curveOf(signer.signingKey)
  if (curve === null) return 'the signing key has no name of a key'
  try {
    const { publicKey } = openSigningKey(curve, vault.unwrap(signer.wrapped))
    return formatDidKey(publicKey) === signer.signingKey ? null : 'the signing key is not the one that is named'
  } catch (error) {
    return `the signing key cannot be unwrapped (${error instanceof Error ? error.message : String(error)})`
  }
}

/**
 * Returns the key for signing what is published: a commit, or an operation on the identity. Null if there is no such
 * account. Throws `SigningHeld` while the identity may name another key.
 */
export async function settledKeyOf(ctx: Context, reader: Reader, did: Did): Promise<SigningKey | null> {
  const signer = await findSigner(reader, did)
  if (signer && signer.heldAt !== null) throw new SigningHeld()
  return signer && unwrapped(ctx, signer)
}

/** Whether the account must not sign commits, because the identity may name another key. */
export const isSigningHeld = async (reader: Reader, did: Did): Promise<boolean> =>
  (await findSigner(reader, did))?.heldAt != null

/** The signer of an account and its state, for callers that sign only for some accounts. */
export interface FoundSigner<Row = unknown> {
  key: SigningKey
  status: AccountStatus
  /** Whether the caller may still act, as in `validColumn`. */
  valid: number
  /** The row that the caller wanted to read with the same statement. */
  beside: Row
}

export async function accountSigner<Row = unknown>(
  ctx: Context,
  reader: Reader,
  did: Did,
  revalidation: Revalidation | null = null,
  beside?: Beside,
): Promise<FoundSigner<Row> | null> {
  const row = await findSigner<Row>(reader, did, revalidation, beside)
  return row && { key: unwrapped(ctx, row), status: statusOf(row), valid: row.valid, beside: row }
}

/**
 * Returns the key with which an active account signs a commit, and how many records it may have (0: any number).
 * Throws what `activeWriter` throws, and `SigningHeld` while the identity may name another key.
 */
export async function activeSigner(
  ctx: Context,
  tx: Tx,
  did: Did,
  revalidation: Revalidation | null,
): Promise<{ key: SigningKey; maxRecords: number }> {
  const { signer, maxRecords } = await activeWriter(ctx, tx, did, revalidation)
  if (signer.heldAt !== null) throw new SigningHeld()
  return { key: unwrapped(ctx, signer), maxRecords }
}

/**
 * Returns the row of an active account and its record quota, for a write that is not signed. Throws `AccountNotFound`,
 * `AccountTakedown`, `AccountDeactivated`, or the refusal of a caller whose access has ended.
 */
export async function activeWriter(
  ctx: Context,
  tx: Tx,
  did: Did,
  revalidation: Revalidation | null,
): Promise<{ signer: AccountSigner; maxRecords: number }> {
  const signer = await findSigner(tx, did, revalidation)
  requireActive(signer && statusOf(signer))
  requireValid(revalidation, signer!)
  const { records } = effectiveQuota(ctx.config, { records: signer!.maxRecords, blobBytes: null })
  return { signer: signer!, maxRecords: records }
}

/**
 * Replace the key with which an account signs, and end the hold, if there is one. Returns false if the current key is
 * no longer `before`, a did:key. The caller must sign the head of the repository again.
 */
export const replaceSigningKey = async (tx: Tx, did: Did, before: string, key: WrappedKey): Promise<boolean> =>
  (await updateSigningKey(tx, did, before, key)) > 0

/** The curve follows from the public key. */
function unwrapped(ctx: Context, { signingKey: name, wrapped }: WrappedKey): SigningKey {
  const keys = signingKeys(ctx)
  const kept = keys.get(name)
  if (kept) return kept
  const key = openSigningKey(curveOf(name)!, ctx.vault.unwrap(wrapped))
  keys.set(name, key)
  return key
}
