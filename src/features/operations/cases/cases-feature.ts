import type { Feature } from '../../../http/feature.ts'
import { caseRetentionSweep } from './case-retention-sweep.ts'
import { fileReport } from './case-intake.ts'
import { caseRoutes } from './case-routes.ts'
import { deleteCasesOf } from './case-store.ts'
import { blobSubject } from './case-subjects.ts'
import { noticeRoutes } from './notice-routes.ts'
import { quarantineRoutes } from './quarantine-routes.ts'

export const cases: Feature = {
  name: 'cases',
  capabilities: ['abuseNotices'],
  routes: [...caseRoutes, ...noticeRoutes, ...quarantineRoutes],
  sweeps: [caseRetentionSweep],
  async reportBlob(ctx, tx, { did, cid, reason }) {
    await fileReport(ctx, tx, blobSubject(did, cid), { source: 'check', by: 'blob-hook', reason: '', text: reason })
  },
  async forgetAccount(_, tx, did) {
    await deleteCasesOf(tx, did)
  },
}
