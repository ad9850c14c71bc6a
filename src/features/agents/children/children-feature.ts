import type { Feature } from '../../../http/feature.ts'
import { scheduleChildrenOf } from './child-deletion.ts'
import { childRoutes } from './child-routes.ts'
import { buryChild } from './child-store.ts'

export const children: Feature = {
  name: 'children',
  routes: childRoutes,
  async forgetAccount(ctx, tx, did) {
    await scheduleChildrenOf(ctx, tx, did)
    await buryChild(tx, did, ctx.clock.now())
  },
}
