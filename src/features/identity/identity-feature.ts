import type { Feature } from '../../http/feature.ts'
import { didCacheSweep } from './did-resolution.ts'
import { handleRoutes } from './handle-routes.ts'
import { reservedKeySweep } from './identity-keys.ts'
import { leaveAllNames, nameClaimSweep } from './name-claims.ts'
import { plcOperationRoutes } from './plc-operation-routes.ts'
import { resolutionRoutes } from './resolution-routes.ts'
import { wellKnownRoutes } from './well-known-routes.ts'

export const identity: Feature = {
  name: 'identity',
  routes: [...resolutionRoutes, ...handleRoutes, ...plcOperationRoutes, ...wellKnownRoutes],
  sweeps: [didCacheSweep, reservedKeySweep, nameClaimSweep],
  prepare: leaveAllNames,
}
