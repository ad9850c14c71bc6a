/** What account holders change about their accounts, and what is swept up after them. */
import type { Feature } from '../../http/feature.ts'
import { accountReaperSweep } from './account-reaper-sweep.ts'
import { emailRoutes } from './email-routes.ts'
import { lifecycleRoutes } from './lifecycle-routes.ts'
import { passwordResetStep } from './password-changes.ts'
import { passwordRoutes } from './password-routes.ts'

export const accountChanges: Feature = {
  name: 'account-changes',
  routes: [...emailRoutes, ...passwordRoutes, ...lifecycleRoutes],
  sweeps: [accountReaperSweep],
  steps: [passwordResetStep],
}
