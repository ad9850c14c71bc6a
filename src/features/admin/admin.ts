/** The operator's interface under `/v1/admin`. */
import type { Feature } from '../../http/feature.ts'
import { accountReportRoutes } from './account-report-routes.ts'
import { claimCodeRoutes } from './claim-code-routes.ts'
import { serviceReportRoutes } from './service-report-routes.ts'

export const admin: Feature = { name: 'admin', routes: [...accountReportRoutes, ...claimCodeRoutes, ...serviceReportRoutes] }
