/** The operator's interface: the routes under `/v1/admin`, and the methods of com.atproto.admin.*. */
import type { Feature } from '../../../http/feature.ts'
import { stepSweep } from '../../../platform/running/step-sweep.ts'
import { accountAccessRoutes } from './account-access-routes.ts'
import { accountAdminRoutes } from './account-admin-routes.ts'
import { accountArchiveRoutes } from './account-archive-routes.ts'
import { accountReportRoutes } from './account-report-routes.ts'
import { accountRepairRoutes } from './account-repair-routes.ts'
import { clusterRoutes } from './cluster-routes.ts'
import { claimCodeRoutes } from './claim-code-routes.ts'
import { configurationRoutes } from './configuration-routes.ts'
import { consentEventRoutes } from './consent-event-routes.ts'
import { quotaRoutes } from './quota-routes.ts'
import { serviceReportRoutes } from './service-report-routes.ts'
import { signUpRoutes } from './sign-up-routes.ts'
import { stepRoutes } from './step-routes.ts'
import { subjectStatusRoutes } from './subject-status-routes.ts'

export const admin: Feature = {
  name: 'admin',
  routes: [
    ...accountAdminRoutes,
    ...accountAccessRoutes,
    ...subjectStatusRoutes,
    ...accountReportRoutes,
    ...accountArchiveRoutes,
    ...accountRepairRoutes,
    ...claimCodeRoutes,
    ...consentEventRoutes,
    ...configurationRoutes,
    ...quotaRoutes,
    ...signUpRoutes,
    ...serviceReportRoutes,
    ...clusterRoutes,
    ...stepRoutes,
  ],
  sweeps: [stepSweep],
}
