import type { Feature } from '../../../http/feature.ts'
import { stylesheet } from '../../../http/page.ts'
import { deleteSignInsOf } from './device-store.ts'
import { languageRoutes } from './language-routes.ts'

export const pages: Feature = {
  name: 'pages',
  routes: [stylesheet.route, ...languageRoutes],
  async forgetAccount(_, tx, did) {
    await deleteSignInsOf(tx, did)
  },
  async endAccess(_, tx, did, why) {
    if (why !== 'transferred') await deleteSignInsOf(tx, did)
  },
}
