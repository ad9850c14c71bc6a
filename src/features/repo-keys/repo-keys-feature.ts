import type { Feature } from '../../http/feature.ts'
import { settleStep } from './key-settlement.ts'
import { repoKeyRoutes } from './repo-key-routes.ts'

export const repoKeys: Feature = { name: 'repo-keys', routes: repoKeyRoutes, steps: [settleStep] }
