/** Pages for account holders: signing in and up, looking after an account, choosing a new password. */
import type { Feature } from '../../http/feature.ts'
import { stylesheet } from '../../http/page.ts'
import { accountRoutes } from './account-routes.ts'
import { signInRoutes } from './sign-in-pages.ts'

export const web: Feature = {
  name: 'web',
  routes: [...signInRoutes, ...accountRoutes, stylesheet],
}
