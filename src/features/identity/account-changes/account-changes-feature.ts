/** Changes of accounts by their holders, and the sweep that deletes accounts whose deletion is due. */
import type { Feature } from '../../../http/feature.ts'
import { accountEventRoutes } from './account-event-routes.ts'
import { accountReaperSweep } from './account-reaper-sweep.ts'
import { emailRoutes } from './email-routes.ts'
import { lifecycleRoutes } from './lifecycle-routes.ts'
import { ownKeyRoutes } from './own-key.ts'
import { passwordResetStep } from './password-changes.ts'
import { toldOperationStep } from './told-operation.ts'
import { plcOperationRoutes } from './plc-operation-routes.ts'
import { passwordRoutes } from './password-routes.ts'

export const accountChanges: Feature = {
  name: 'account-changes',
  capabilities: ['walletAccountDelete'],
  routes: [
    ...emailRoutes,
    ...passwordRoutes,
    ...lifecycleRoutes,
    ...plcOperationRoutes,
    ...ownKeyRoutes,
    ...accountEventRoutes,
  ],
  sweeps: [accountReaperSweep],
  steps: [passwordResetStep, toldOperationStep],
}
