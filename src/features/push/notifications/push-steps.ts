/**
 * The queue of pushes: durable steps, one for each device and event, which are performed one after another. Accounts
 * take turns.
 *
 * No request waits for a push. A push waits while the relay is down, until it is too old. Once the relay has answered,
 * the push is not sent again, with one exception: if the process is killed after the answer and before it deletes the
 * step, it sends the push once more after its restart.
 */
import { HOUR_SECS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { PushMessage } from '../../../protocol/push/push-message.ts'
import { fanOutSender } from './sender-keys.ts'
import { deliver, type OrderedPush } from './push-delivery.ts'
import { reachableDevices } from './push-registration-store.ts'
import { inTurn, isAtRelay, relayOf } from './relay.ts'

const DEFAULT_TTL_SECS = HOUR_SECS
/** How long a device counts as reachable while a requested handle has not arrived. */
const HANDLE_MILLIS = 10 * MINUTE_MILLIS

export const pushStep: StepKind<OrderedPush> = {
  name: 'push',
  concurrency: 1,
  inOrder: true,
  maxSteps: 8000,
  // No limit on tries: the push waits until it is too old.
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  isReady: isAtRelay,
  async take(ctx, { did, payload }) {
    const relay = relayOf(ctx)
    if (relay === null) return
    const outcome = await inTurn(relay, () => deliver(ctx, relay, payload))
    ctx.metrics.count('notify_pushes_total', { outcome })
    if (outcome !== 'delivered')
      linesOf(ctx).within(outcome, (omitted) =>
        ctx.log.warn('push not delivered', { did, outcome, detail: payload.message.type, omitted }),
      )
  },
}

const linesOf = perContext(({ clock }) => new LogRateLimiter(clock))

/**
 * Queue a push to every device of an account, in the caller's transaction. The pushes are sent once the transaction is
 * durable. Returns the number of devices: 0 without a relay. Callers do not wait for a push, and it may be lost.
 */
export async function enqueuePush(
  ctx: Context,
  tx: Tx,
  did: Did,
  message: PushMessage,
  { ttlSecs = DEFAULT_TTL_SECS } = {},
): Promise<number> {
  const { config, clock, steps } = ctx
  if (config.notifications.relay === null) return 0
  const now = clock.now()
  const reachable = await reachableDevices(tx, did, now - HANDLE_MILLIS)
  const sender = reachable.some(({ isPing }) => !isPing) ? await fanOutSender(ctx, tx) : null
  const devices = reachable.filter(({ isPing }) => isPing || sender !== null)
  if (devices.length === 0) return 0
  const event = Bun.randomUUIDv7()
  await steps.addAll(
    tx,
    pushStep,
    devices.map(({ owner, deviceId, isPing }) => ({
      key: `${event} ${deviceId}`,
      did,
      share: did,
      payload: {
        device: { owner, deviceId },
        message,
        kid: isPing ? null : (sender?.kid ?? null),
        goodUntil: now + ttlSecs * 1000,
      },
    })),
  )
  return devices.length
}
