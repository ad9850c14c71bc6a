/**
 * Alerts tell operators, by mail and webhook, of what they have to act on: once when it begins and once when it is
 * over. What the alerts check is loaded with the first pass, so that alerts which are off cost nothing.
 */
import type { Feature } from '../../../http/feature.ts'
import type { Context } from '../../../platform/context.ts'
import { areAlertsOn, PASS_SECS } from './alert.ts'
import { alertRoutes } from './alert-routes.ts'
import { countAlertsOn } from './alert-store.ts'
import { webhookStep } from './alert-webhook.ts'
import { alertSweep } from './alert-sweep.ts'

export const alerts: Feature = {
  name: 'alerts',
  routes: alertRoutes,
  sweeps: [alertSweep],
  steps: [webhookStep],
  async prepare({ config, db, metrics }) {
    if (areAlertsOn(config))
      metrics.gauges('alerts_on', 'Current alerts that were sent, by name', 'alert', () => countAlertsOn(db))
  },
  start(ctx) {
    if (areAlertsOn(ctx.config) && ctx.db.cluster !== null) return lookRegularly(ctx)
  },
}

/** On a cluster, one node makes the passes of a sweep, but each node has a disk and a clock of its own. */
function lookRegularly(ctx: Context): () => void {
  let isLooking = false
  const look = async () => {
    isLooking = true
    try {
      await (await import('./alert-pass.ts')).lookAtNode(ctx)
    } finally {
      isLooking = false
    }
  }
  const timer = setInterval(() => {
    if (!isLooking) ctx.background.run('look at the alerts of this node', look)
  }, PASS_SECS * 1000)
  timer.unref()
  return () => clearInterval(timer)
}
