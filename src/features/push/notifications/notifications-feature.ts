import type { Feature } from '../../../http/feature.ts'
import { removeRegistration, removeRegistrationsOf } from './push-registrations.ts'
import { hastenSteps } from '../../../platform/running/steps.ts'
import { handleStep } from './handle-steps.ts'
import { pushRegistrationRoutes } from './push-registration-routes.ts'
import { testPushRoutes } from './test-push-routes.ts'
import { declareQueueGauges } from './queue-status.ts'
import { pushStep } from './push-steps.ts'
import { senderKeyRoutes } from './sender-key-routes.ts'
import { relayOf } from './relay.ts'

export const notifications: Feature = {
  name: 'notifications',
  routes: [...senderKeyRoutes, ...pushRegistrationRoutes, ...testPushRoutes],
  steps: [handleStep, pushStep],
  /** Retry steps that wait for the relay: the operator may have restarted the server in order to retry. */
  async prepare({ config, db, clock }) {
    if (config.notifications.relay === null) return
    for (const kind of [handleStep, pushStep]) await hastenSteps(db, kind, clock.now())
  },
  start(ctx) {
    declareQueueGauges(ctx)
    return () => relayOf(ctx)?.client.close()
  },
  async forgetAccount(ctx, tx, did) {
    await removeRegistrationsOf(ctx, tx, did)
  },
  /**
   * End registrations: an intruder may have registered a device, or the account may have moved to another device. The
   * old device would learn of sign-ins and agents from then on. The holder's devices register again when they sign in.
   */
  async endAccess(ctx, tx, did, why) {
    if (why === 'reset_password' || why === 'revoked' || why === 'transferred')
      return { pushDevices: await removeRegistrationsOf(ctx, tx, did) }
  },
  async endOperatorDevice(ctx, tx, deviceId) {
    await removeRegistration(ctx, tx, { owner: 'operators', deviceId })
  },
}
