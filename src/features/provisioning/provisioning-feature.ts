import type { Feature } from '../../http/feature.ts'
import { ceremonyAdminRoutes } from './ceremony-admin-routes.ts'
import { ceremonyStates, stateOfCeremony } from './ceremony-state.ts'
import { countCeremonies } from './ceremony-store.ts'
import { ceremonySweep } from './ceremony-sweep.ts'
import { issuedKeyRoutes } from './issued-key-routes.ts'
import { provisioningLoginRoutes } from './provisioning-login-routes.ts'
import { provisioningRoutes } from './provisioning-routes.ts'

export const provisioning: Feature = {
  name: 'provisioning',
  routes: [...provisioningRoutes, ...issuedKeyRoutes, ...provisioningLoginRoutes, ...ceremonyAdminRoutes],
  sweeps: [ceremonySweep],
  start({ db, metrics }) {
    metrics.gauges('ceremonies', 'Ceremonies by which wallets are creating accounts', 'state', async () => {
      const counts = new Map<string, number>(ceremonyStates.map((state) => [state, 0]))
      for (const { count, ...steps } of await countCeremonies(db)) counts.set(stateOfCeremony(steps), count)
      return counts
    })
  },
}
