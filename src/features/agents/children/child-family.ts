/** Which account made which, for operators: a takedown of one of them does not affect the others. */
import type { Reader } from '../../../platform/database/database.ts'
import { statusOf, type AccountStatus } from '../../../protocol/account-status.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'
import { accountsMadeBy, parentOf } from './child-store.ts'

export interface Family {
  /** The account that made this one for an agent; null if none did. */
  madeBy: Did | null
  /** The accounts that it made, as far as they exist, the oldest first. */
  children: { did: Did; handle: Handle | null; status: AccountStatus }[]
}

export const familyOf = async (reader: Reader, did: Did): Promise<Family> => ({
  madeBy: await parentOf(reader, did),
  children: (await accountsMadeBy(reader, did)).map((child) => ({
    did: child.did,
    handle: child.handle,
    status: statusOf(child),
  })),
})
