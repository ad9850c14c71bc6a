/** Accounts that other accounts make for agents, and end. */
import type { Feature } from '../../../http/feature.ts'
import { scheduleChildrenOf } from '../../identity/account-changes/account-changes.ts'
import { childRoutes } from './child-routes.ts'

export const children: Feature = {
  name: 'children',
  routes: childRoutes,
  forgetAccount: scheduleChildrenOf,
}
