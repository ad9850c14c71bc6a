/**
 * The queue of pushes: durable steps, one for each device and event, which are performed one after another.
 *
 * A push is sent at most once for each time that the process is killed, and not at all once it is too old.
 */
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { StepKind } from '../../platform/running/steps.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { PushMessage } from '../../protocol/push/push-message.ts'
import { reachableDevices, type RegistrationKey } from './push-registration-store.ts'

interface OrderedPush {
  device: RegistrationKey
  message: PushMessage
  /** The same for all devices that are told of one event. */
  event: string
  /** From then on it is not sent any more. */
  goodUntil: Millis
}

const DEFAULT_TTL_SECS = 3600
/** How long a device counts as reachable after its handle was asked for and before the relay gave it. */
const HANDLE_MILLIS = 10 * 60 * 1000

export const pushStep: StepKind<OrderedPush> = {
  name: 'push',
  concurrency: 1,
  inOrder: true,
  maxSteps: 8000,
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  async take({ config, clock }, { payload: { goodUntil } }) {
    if (config.notifications.relay !== null && clock.now() < goodUntil) throw new Error('the relay cannot be reached')
  },
}

/**
 * Queue a push to every device of an account, in the caller's transaction; they are sent once that is durable. Returns
 * how many devices that is: 0 without a relay. Nobody ever waits for a push, and it may be lost.
 */
export async function enqueuePush(
  { config, clock, steps }: Pick<Context, 'config' | 'clock' | 'steps'>,
  tx: Tx,
  did: Did,
  message: PushMessage,
  { ttlSecs = DEFAULT_TTL_SECS } = {},
): Promise<number> {
  if (config.notifications.relay === null) return 0
  const now = clock.now()
  const devices = await reachableDevices(tx, did, now - HANDLE_MILLIS)
  if (devices.length === 0) return 0
  const event = Bun.randomUUIDv7()
  const goodUntil = now + ttlSecs * 1000
  await steps.addAll(
    tx,
    pushStep,
    devices.map((device) => ({ key: `${event} ${device.deviceId}`, did, payload: { device, message, event, goodUntil } })),
  )
  return devices.length
}
