/** The mail to account holders, and the sweep of expired codes. */
import type { Feature } from '../../../http/feature.ts'
import { mailStep } from './mail-steps.ts'
import { deleteMailedCodes, deleteMailedCodesOf } from './mailed-code-store.ts'
import { mailedCodeSweep } from './mailed-code-sweep.ts'

export const mails: Feature = {
  name: 'mails',
  sweeps: [mailedCodeSweep],
  steps: [mailStep],
  async forgetAccount(_, tx, did) {
    await deleteMailedCodesOf(tx, did)
  },
  async endAddress(_, tx, did) {
    await deleteMailedCodesOf(tx, did)
  },
  async endAccess(_, tx, did, why) {
    if (why !== 'new_password' && why !== 'reset_password') return
    for (const purpose of ['reset_password', 'sign_in'] as const) await deleteMailedCodes(tx, did, purpose)
  },
}
