/**
 * Adds an account with the state that it had at another server. The network knows its status already, so no event is
 * added.
 */
import type { Tx } from '../../../platform/database/database.ts'
import {
  addAccount,
  allowInvites,
  updateEmailConfirmed,
  updateTakedown,
  type Account,
  type NewAccount,
} from './account-store.ts'

export type ArrivedAccount = NewAccount & Pick<Account, 'emailConfirmedAt' | 'takedownRef' | 'invitesDisabled'>

/** Throws a unique violation if the DID, handle or email address belongs to another account. */
export async function addArrivedAccount(tx: Tx, account: ArrivedAccount): Promise<void> {
  const { did, emailConfirmedAt, takedownRef, invitesDisabled } = account
  await addAccount(tx, account)
  if (emailConfirmedAt !== null) await updateEmailConfirmed(tx, did, emailConfirmedAt)
  if (takedownRef !== null) await updateTakedown(tx, did, takedownRef)
  if (invitesDisabled) await allowInvites(tx, did, false)
}
