/**
 * Test pushes: at an operator's request, one push to every device of an account, without the queue, and a report of
 * each step.
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { hastenSteps } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { handleStep, obtainHandle } from './handle-steps.ts'
import { deliver, type DeliveryWatch } from './push-delivery.ts'
import { pushStep } from './push-steps.ts'
import { registrationsOf, type PushRegistration } from './push-registration-store.ts'
import { RelayRefused, RelayUnanswered, RelayUnreachable, RelayWait } from './relay-client.ts'
import type { Relay } from './relay.ts'

export interface TestPush {
  deviceId: string
  /** What was done, in order: `register`, `dial`, `enroll`, `sealed`. */
  steps: { step: string; detail: string }[]
  /** What became of the push: a `PushResult`, or why none was sent. */
  outcome: string
}

const GOOD_FOR_MILLIS = 5 * MINUTE_MILLIS

const isFault = (error: unknown): error is Error =>
  [RelayRefused, RelayUnanswered, RelayUnreachable, RelayWait].some((kind) => error instanceof kind)

/** Push to one device after the other. If the relay cannot be used, the remaining devices get no push. */
export async function sendTestPushes(ctx: Context, relay: Relay, did: Did): Promise<TestPush[]> {
  relay.client.forgetDenial()
  const sent: TestPush[] = []
  let fault: string | null = null
  for (const registration of await registrationsOf(ctx.db, did)) {
    const { deviceId } = registration
    const steps: TestPush['steps'] = []
    const outcome: string =
      fault ??
      (await relay.client
        .alone(() => tryDevice(ctx, relay, registration, (step, detail) => steps.push({ step, detail })))
        .catch((error: unknown) => {
          if (!isFault(error)) throw error
          return (fault = error.message)
        }))
    sent.push({ deviceId, steps, outcome })
  }
  if (sent.length > 0 && fault === null) await goOn(ctx)
  return sent
}

/** The relay works, so run the waiting steps now. */
async function goOn({ db, clock, steps }: Context): Promise<void> {
  for (const kind of [handleStep, pushStep]) await hastenSteps(db, kind, clock.now())
  steps.wake()
}

async function tryDevice(
  ctx: Context,
  relay: Relay,
  registration: PushRegistration,
  watch: DeliveryWatch,
): Promise<string> {
  const { owner, deviceId } = registration
  const { clock, config } = ctx
  if (relay.client.state.isConnected) watch('dial', 'connected before')
  if (registration.handle === null) {
    await obtainHandle(ctx, relay, registration, watch)
    watch('register', 'the relay knows the device now')
  }
  const { host } = new URL(config.publicUrl)
  const message = { type: 'test', title: `Test push from ${host}`, body: `Notifications from ${host} arrive.` }
  return deliver(
    ctx,
    relay,
    { device: { owner, deviceId }, message, kid: null, goodUntil: clock.now() + GOOD_FOR_MILLIS },
    watch,
  )
}
