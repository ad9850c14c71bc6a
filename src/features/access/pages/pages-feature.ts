import type { Feature } from '../../../http/feature.ts'
import { brandRoutes, prepareLogo } from '../../../http/brand.ts'
import { passkeyScript } from '../page-parts/page-parts.ts'
import { deleteSignInsOf } from './device-store.ts'
import { languageRoutes } from './language-routes.ts'

export const pages: Feature = {
  name: 'pages',
  routes: [...brandRoutes, ...languageRoutes, passkeyScript.route],
  prepare: prepareLogo,
  async forgetAccount(_, tx, did) {
    await deleteSignInsOf(tx, did)
  },
  async endAccess(_, tx, did) {
    await deleteSignInsOf(tx, did)
  },
}
