/**
 * The key of an account that was active here, lives elsewhere now, and is on its way back. Services know it by the key that
 * its identity names, and look for a newer one only when a token names the algorithm of that one: if its key here is on
 * another curve, it gets a new one before the identity is to name it again.
 */
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { curveOf, formatDidKey, type Curve } from '../../protocol/keys.ts'
import { accountOf, makeAccountKey, signingKeyOf, updateSigningKey, type Account } from '../accounts/accounts.ts'
import { resignHead } from '../repo/repo.ts'
import { claimsOf } from './did-fitness.ts'

/** Before the account's key is told to whoever changes the identity. Refuses when the directory does not answer. */
export async function suitReturningKey(ctx: Context, did: Did): Promise<void> {
  const account = await accountOf(ctx.db, did)
  const key = await signingKeyOf(ctx, ctx.db, did)
  if (!account || !key || !isLeftBehind(account)) return
  const own = formatDidKey(key.publicKey)
  const curve = await curveElsewhere(ctx, did, own)
  if (curve === null || curve === curveOf(own)) return
  const made = makeAccountKey(ctx, curve)
  await ctx.db.transaction(async (tx) => {
    const now = await accountOf(tx, did)
    if (!now || !isLeftBehind(now) || (await updateSigningKey(tx, did, own, made)) === 0) return
    // What is stored fits together at any time: the next import or the activation signs once more.
    await resignHead(ctx, tx, did, (await signingKeyOf(ctx, tx, did))!)
  })
}

/** Deactivated by its holder. One that arrives for the first time has a key of the right curve, or the one it was promised. */
const isLeftBehind = ({ deactivatedAt, createdAt, takedownRef }: Account): boolean => deactivatedAt !== null && deactivatedAt !== createdAt && takedownRef === null

/** Of the key that the identity names; null where it names this server or no key, or where the account's own key may change it. */
async function curveElsewhere(ctx: Context, did: Did, own: string): Promise<Curve | null> {
  const claims = await claimsOf(ctx, did)
  if (!claims?.signingKey || claims.isHere || claims.rotationKeys?.includes(own)) return null
  return curveOf(claims.signingKey)
}
