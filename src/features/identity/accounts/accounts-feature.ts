/**
 * The mail to account holders, and the sweeps of expired codes and former addresses. The endpoints of accounts are in
 * other features.
 */
import type { Feature } from '../../../http/feature.ts'
import { deleteAccountRow, deleteFurtherHandlesOf, deleteMailedCodesOf, deletePlacesOf } from './accounts.ts'
import { noticeStep } from './account-events.ts'
import { deleteFormerAddressesOf } from './former-address-store.ts'
import { formerAddressSweep } from './former-address-sweep.ts'
import { mailStep } from './mail-steps.ts'
import { mailedCodeSweep } from './mailed-code-sweep.ts'
import { deleteOldAttempts } from './sign-in-attempt-store.ts'

export const accounts: Feature = {
  name: 'accounts',
  sweeps: [mailedCodeSweep, formerAddressSweep],
  steps: [mailStep, noticeStep],
  reclaim: ({ db, clock }) => deleteOldAttempts(db, clock.now()),
  async forgetAccount(_, tx, did) {
    for (const forget of [
      deletePlacesOf,
      deleteMailedCodesOf,
      deleteFormerAddressesOf,
      deleteFurtherHandlesOf,
      deleteAccountRow,
    ])
      await forget(tx, did)
  },
  async endAccess(_, tx, did, why) {
    // An intruder may have used some of the known places.
    if (why !== 'new_password' && why !== 'transferred') await deletePlacesOf(tx, did)
  },
}
