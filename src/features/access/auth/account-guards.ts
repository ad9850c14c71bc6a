/** What credentials require of their account. */
import type { RequiredScope } from '../../../http/credential.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { requireValid, type Revalidation } from '../../../http/revalidation.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountNotFound, accountStatus, refuseTakendown, statusOfCaller } from '../../identity/accounts/accounts.ts'

/** Throws `AccountTakedown`, or `AccountNotFound` if the account is missing. */
export async function requireNotTakendown({ ctx }: Exchange, did: Did): Promise<void> {
  refuseTakendown(await accountStatus(ctx.db, did))
}

/**
 * Throws `AccountNotFound`, `AccountTakedown` if the endpoint refuses taken-down accounts, or the refusal of a caller
 * whose access has ended.
 */
export async function revalidateWithAccount(
  reader: Reader,
  revalidation: Revalidation,
  { refusesTakendown = false }: RequiredScope = {},
): Promise<void> {
  const account = await statusOfCaller(reader, revalidation.did, revalidation)
  if (account === null) throw accountNotFound()
  if (refusesTakendown) refuseTakendown(account.status)
  requireValid(revalidation, account)
}
