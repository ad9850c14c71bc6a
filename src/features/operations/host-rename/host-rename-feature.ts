/** The routes of renaming the server, and the step that goes through its accounts. */
import type { Feature } from '../../../http/feature.ts'
import { hostRenameRoutes } from './host-rename-routes.ts'
import { forgetOutcomeOf } from './host-rename-store.ts'
import { hostRenameStep } from './host-rename-step.ts'

export const hostRename: Feature = {
  name: 'host-rename',
  routes: hostRenameRoutes,
  steps: [hostRenameStep],
  async forgetAccount(_, tx, did) {
    await forgetOutcomeOf(tx, did)
  },
}
