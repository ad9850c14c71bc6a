/**
 * The signing key of an account that moved away and is coming back. Other services cache the key that the identity
 * names, and fetch a newer one only if a token uses the algorithm of the cached key. So if the account's key here is on
 * another curve, it is replaced by one on the curve of the cached key before the identity names a key of this server
 * again.
 */
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { curveOf, formatDidKey, type Curve } from '../../../protocol/keys.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import {
  makeAccountKey,
  settledKeyOf,
  settledTransaction,
  signingKeyOf,
  replaceSigningKey,
} from '../account-keys/account-keys.ts'
import { resignHead } from '../../data/repo/repo.ts'
import { claimsOf } from './did-fitness.ts'

/** Replace the account's key if needed, before it is published. Throws `PlcDirectoryError` if the directory fails. */
export async function suitReturningKey(ctx: Context, did: Did): Promise<void> {
  const account = await accountOf(ctx.db, did)
  const key = await signingKeyOf(ctx, ctx.db, did)
  if (!account || !key || !isLeftBehind(account)) return
  const own = formatDidKey(key.publicKey)
  const curve = await curveElsewhere(ctx, did, own)
  if (curve === null || curve === curveOf(own)) return
  const made = makeAccountKey(ctx, curve)
  await settledTransaction(ctx, did, async (tx) => {
    const now = await accountOf(tx, did)
    if (
      !now ||
      !isLeftBehind(now) ||
      !(await settledKeyOf(ctx, tx, did)) ||
      !(await replaceSigningKey(tx, did, own, made))
    )
      return
    // Keeps the stored head signed with the stored key, although the next import or the activation signs it again.
    await resignHead(ctx, tx, did, (await signingKeyOf(ctx, tx, did))!)
  })
}

/**
 * Whether the account was active here and its holder deactivated it. An account that arrives for the first time already
 * has a key on the right curve.
 */
const isLeftBehind = ({ deactivatedAt, createdAt, takedownRef }: Account): boolean =>
  deactivatedAt !== null && deactivatedAt !== createdAt && takedownRef === null

/**
 * Returns the curve of the key that the identity names; null if it names this server or no key, or if the account's own
 * key is a rotation key.
 */
async function curveElsewhere(ctx: Context, did: Did, own: string): Promise<Curve | null> {
  const claims = await claimsOf(ctx, did)
  if (!claims?.signingKey || claims.isHere || claims.rotationKeys?.includes(own)) return null
  return curveOf(claims.signingKey)
}
