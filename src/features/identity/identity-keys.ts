/** Keys of the service in matters of identity: the rotation key it holds in did:plc, and keys promised to accounts. */
import { perContext, type Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database.ts'
import { newSigningSecret } from '../../platform/signing-keys.ts'
import type { Sweep } from '../../platform/sweeps.ts'
import { serverSecret } from '../../platform/vault.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { formatDidKey, signingKey, type SigningKey } from '../../protocol/keys.ts'
import { makeAccountKey, signingKeyOf, type WrappedKey } from '../accounts/accounts.ts'
import { deleteReservedKeysBefore, findReservedKey, forgetReservedKey, insertReservedKey } from './reserved-key-store.ts'

const rotationKeyName = 'plc-rotation-key'
/** A reservation that no account took up. */
const reservationMillis = 30 * 24 * 60 * 60 * 1000

const rotationKeys = perContext((ctx) => serverSecret(ctx.db, ctx.vault, rotationKeyName, () => newSigningSecret('p256')).then((secret) => signingKey('p256', secret)))

/** The rotation key that the service puts, below the account's own, into the identities it makes. */
export const serverRotationKey = (ctx: Context): Promise<SigningKey> => rotationKeys(ctx)

/** The key of ours that may change this DID: the account's own, or the service's. `null` when there is none. */
export async function heldRotationKey(ctx: Context, did: Did, rotationKeys: readonly string[]): Promise<SigningKey | null> {
  const ours = [await signingKeyOf(ctx, ctx.db, did), await serverRotationKey(ctx)]
  return ours.find((key) => key && rotationKeys.includes(formatDidKey(key.publicKey))) ?? null
}

/** The key promised to a DID: the same one until an account takes it, or the promise lapses. Without a DID, a new one. */
export function reserveKey(ctx: Context, did: Did | null): Promise<WrappedKey> {
  const made = makeAccountKey(ctx, 'p256')
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

export const reservedKeySweep: Sweep = {
  name: 'reserved-keys',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteReservedKeysBefore(db, clock.now() - reservationMillis) }),
}
