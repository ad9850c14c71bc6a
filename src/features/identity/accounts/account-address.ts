/** Changes of an account's email address. */
import { endAddress } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, updateEmail, updateEmailConfirmed } from './account-store.ts'

/**
 * Give an account another address, not yet confirmed. Codes that were mailed to the old one become void. Returns the
 * old address, or null if there was none. Throws a unique violation if the address belongs to another account.
 */
export async function replaceAddress(ctx: Context, tx: Tx, did: Did, address: string): Promise<string | null> {
  const before = (await accountOf(tx, did))?.email ?? null
  await updateEmail(tx, did, address)
  await endAddress(ctx, tx, did, { before, after: address })
  return before
}

export const confirmAddress = ({ clock }: Pick<Context, 'clock'>, tx: Tx, did: Did): Promise<number> =>
  updateEmailConfirmed(tx, did, clock.now())
