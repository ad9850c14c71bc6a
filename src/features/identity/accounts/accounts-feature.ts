/** The tables of accounts. Their endpoints are in other features. */
import type { Feature } from '../../../http/feature.ts'
import { deleteAccountRow } from './account-store.ts'
import { deleteFurtherHandlesOf } from './further-handle-store.ts'

export const accounts: Feature = {
  name: 'accounts',
  async forgetAccount(_, tx, did) {
    await deleteFurtherHandlesOf(tx, did)
    await deleteAccountRow(tx, did)
  },
}
