/** What credentials demand of the account that they are for. */
import type { Standing } from '../../../http/credential.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { refuseFallen } from '../../../http/standing.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountNotFound, accountStatus, refuseTakendown, statusOfCaller } from '../../identity/accounts/accounts.ts'

/** Throws `AccountTakedown`, or `AccountNotFound` if the account is missing. */
export async function requireNotTakendown({ ctx }: Exchange, did: Did): Promise<void> {
  refuseTakendown(await accountStatus(ctx.db, did))
}

/** Throws `AccountNotFound`, or the refusal of a caller whose access has ended. */
export async function requireStanding(reader: Reader, did: Did, standing: Standing): Promise<void> {
  const account = await statusOfCaller(reader, did, standing)
  if (account === null) throw accountNotFound()
  refuseFallen(standing, account)
}
