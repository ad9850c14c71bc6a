/** The mail to account holders, and the sweep of expired codes. The endpoints of accounts are in other features. */
import type { Feature } from '../../http/feature.ts'
import { noticeStep } from './account-events.ts'
import { mailStep } from './mail-steps.ts'
import { mailedCodeSweep } from './mailed-code-sweep.ts'
import { deleteOldAttempts } from './sign-in-attempt-store.ts'

export const accounts: Feature = {
  name: 'accounts',
  sweeps: [mailedCodeSweep],
  steps: [mailStep, noticeStep],
  reclaim: ({ db, clock }) => deleteOldAttempts(db, clock.now()),
}
