/** Accounts: their address, their password, and what becomes of them. */
import type { Feature } from '../../http/feature.ts'
import { accountReaper } from './account-deletion.ts'
import { emailRoutes } from './email-routes.ts'
import { lifecycleRoutes } from './lifecycle-routes.ts'
import { mailedCodeSweep } from './mailed-codes.ts'
import { passwordRoutes } from './password-routes.ts'

export const accounts: Feature = {
  name: 'accounts',
  routes: [...emailRoutes, ...passwordRoutes, ...lifecycleRoutes],
  sweeps: [mailedCodeSweep, accountReaper],
}
