/**
 * The door of provisioning: pending accounts, until `ceremony` turns them into accounts.
 *
 * In a ceremony, a wallet makes an identity whose highest key it holds. The ceremony is a row, so it survives every
 * interruption. It goes through these states:
 *
 * 1. `created`: a wallet, or an operator for another person, has claimed handle and address with an invite;
 * 2. `key_issued`: the wallet has asked for the key that will sign the repository, which its identity must name;
 * 3. `did_stored`: the wallet has sent its identity, and the directory may have it now or soon;
 * 4. `registered`: the directory has it (a did:web goes from 3 to the end);
 * 5. one transaction creates the account and deletes the row.
 *
 * A repeated request continues from where the ceremony is. A wallet that comes back with the same code, names and
 * device gets a new session. An abandoned ceremony ends after a week, or after a month if the directory has its
 * identity.
 */
import type { Feature } from '../../../http/feature.ts'
import { ceremonyAdminRoutes } from './ceremony-admin-routes.ts'
import { ceremonyRoutes } from './ceremony-routes.ts'
import { ceremonyStates, countCeremonies } from './ceremony-store.ts'
import { ceremonySweep } from './ceremony-sweep.ts'
import { issuedKeyRoutes } from './issued-key-routes.ts'
import { provisioningLoginRoutes } from './provisioning-login-routes.ts'
import { provisioningRoutes } from './provisioning-routes.ts'

export const ceremony: Feature = {
  name: 'ceremony',
  capabilities: ['createCeremony'],
  routes: [
    ...ceremonyRoutes,
    ...provisioningRoutes,
    ...issuedKeyRoutes,
    ...provisioningLoginRoutes,
    ...ceremonyAdminRoutes,
  ],
  sweeps: [ceremonySweep],
  start({ db, metrics }) {
    metrics.gauges('ceremonies', 'Ceremonies by which wallets are creating accounts', 'state', async () => {
      const counts = new Map<string, number>(ceremonyStates.map((state) => [state, 0]))
      for (const { state, count } of await countCeremonies(db)) counts.set(state, count)
      return counts
    })
  },
}
