import type { Sweep } from '../../../platform/running/sweeps.ts'
import { areAlertsOn, PASS_SECS } from './alert.ts'

/** What an alert looks at is loaded with the first pass. */
export const alertSweep: Sweep = {
  name: 'alerts',
  intervalSecs: (config) => (areAlertsOn(config) ? PASS_SECS : 0),
  run: async (ctx) => (await import('./alert-pass.ts')).passOverAlerts(ctx),
}
