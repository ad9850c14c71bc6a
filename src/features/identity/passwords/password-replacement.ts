/** Sets the passwords of accounts, and ends the access that the previous password gave. */
import type { AccessEnd } from '../../../http/feature.ts'
import { endAccess } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { updatePasswordHash } from './password-store.ts'

/** Give a password to an account that is not in use yet, or, if `hash` is null, take it away. Ends no session. */
export async function givePassword(tx: Tx, did: Did, hash: string | null): Promise<void> {
  await updatePasswordHash(tx, did, hash)
}

/**
 * Replace the password of an account, and end the access that the old password gave, to the extent that the reason
 * requires.
 */
export async function replacePassword(
  ctx: Context,
  tx: Tx,
  did: Did,
  { hash, why }: { hash: string; why: Extract<AccessEnd, 'new_password' | 'reset_password'> },
): Promise<void> {
  await updatePasswordHash(tx, did, hash)
  await endAccess(ctx, tx, did, why)
}
