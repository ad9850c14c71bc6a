import type { Feature } from '../../http/feature.ts'
import { hastenSteps } from '../../platform/running/steps.ts'
import { handleStep } from './handle-steps.ts'
import { pushRegistrationRoutes } from './push-registration-routes.ts'
import { pushTrialRoutes } from './push-trial-routes.ts'
import { declareQueueGauges } from './queue-readout.ts'
import { pushStep } from './push-steps.ts'
import { relayOf } from './relay.ts'

export const notifications: Feature = {
  name: 'notifications',
  routes: [...pushRegistrationRoutes, ...pushTrialRoutes],
  steps: [handleStep, pushStep],
  /** What waited for the relay does not go on waiting: the operator may have restarted the server to change that. */
  async prepare({ config, db, clock }) {
    if (config.notifications.relay === null) return
    for (const kind of [handleStep, pushStep]) await hastenSteps(db, kind, clock.now())
  },
  start(ctx) {
    declareQueueGauges(ctx)
    return () => relayOf(ctx)?.courier.close()
  },
}
