import type { Feature } from '../../../http/feature.ts'
import { caseRoutes } from './case-routes.ts'
import { deleteCasesOf } from './case-store.ts'
import { noticeRoutes } from './notice-routes.ts'
import { quarantineRoutes } from './quarantine-routes.ts'

export const cases: Feature = {
  name: 'cases',
  capabilities: ['abuseNotices'],
  routes: [...caseRoutes, ...noticeRoutes, ...quarantineRoutes],
  async forgetAccount(_, tx, did) {
    await deleteCasesOf(tx, did)
  },
}
