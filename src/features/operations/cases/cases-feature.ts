import type { Feature } from '../../../http/feature.ts'
import { caseRoutes } from './case-routes.ts'
import { deleteCasesOf } from './case-store.ts'
import { noticeRoutes } from './notice-routes.ts'

export const cases: Feature = {
  name: 'cases',
  capabilities: ['abuseNotices'],
  routes: [...caseRoutes, ...noticeRoutes],
  async forgetAccount(_, tx, did) {
    await deleteCasesOf(tx, did)
  },
}
