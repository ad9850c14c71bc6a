/** Delivers one push to one device, and handles the answer of the relay. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { relayedBody, type PushMessage, type SealedPush } from '../../../protocol/push/push-message.ts'
import type { PushOutcome, RelayPush } from '../../../protocol/push/relay-frames.ts'
import { fanOutSender, sealFor, senderNumbered } from './sender-keys.ts'
import { isHandleOrdered, obtainHandle, orderHandle } from './handle-steps.ts'
import {
  clearHandle,
  deleteRegistrations,
  findRegistration,
  noteDelivery,
  updateRenewed,
  type PushRegistration,
  type RegistrationKey,
} from './push-registration-store.ts'
import { type RelayClient, RelayRefused, RelayTooLate, RelayUnanswered, RelayWait, type Watch } from './relay-client.ts'
import type { Relay } from './relay.ts'

export interface OrderedPush {
  device: RegistrationKey
  message: PushMessage
  /** The sender key that seals all pushes of one event; null if the device wanted no content. */
  kid: number | null
  /** The push is not sent after this time. */
  goodUntil: Millis
}

/**
 * What became of a push: the answer of the relay, or why there is none. `expired`: the push was too old. `unreachable`:
 * the device is not registered any more, or has no handle. `unsealed`: there is no key to seal it. `unanswered`: it was
 * sent, but the outcome is unknown. `malformed`: the relay gave an unexpected answer.
 */
export type PushResult = PushOutcome | 'expired' | 'unreachable' | 'unsealed' | 'unanswered' | 'malformed'

/** Minimum time between two attempts to replace a handle that the relay does not know. */
const RENEWAL_MILLIS = HOUR_MILLIS

/**
 * Send a push. Call it from within `inTurn`. Once the relay has given any answer, the push is not sent again. Throws
 * `RelayUnreachable` or `RelayWait` if it has not been sent.
 */
export async function deliver(
  ctx: Context,
  relay: Relay,
  push: OrderedPush,
  watch?: DeliveryWatch,
): Promise<PushResult> {
  const { clock, db } = ctx
  if (clock.now() >= push.goodUntil) return 'expired'
  const waitMillis = relay.pacing.pushes.waitMillis(clock.monotonic())
  if (waitMillis > 0) throw new RelayWait('pushes are sent no faster than the push relay allows', waitMillis)
  await relay.client.connect(watch)
  // Connecting may have taken a while, and the device may have unregistered meanwhile.
  if (clock.now() >= push.goodUntil) return 'expired'
  const registration = await findRegistration(db, push.device)
  const handle = registration && (registration.handle ?? (await awaitedHandle(ctx, relay, registration)))
  if (registration === null || handle === null) return 'unreachable'

  if (!relay.pacing.takeOf(handle)) return 'throttled'
  const content = await contentFor(ctx, registration, push)
  if (typeof content === 'string') return content
  watch?.(
    'sealed',
    registration.isPing
      ? 'a ping, without content'
      : `${relayedBody(content).length} bytes for Apple, with key ${content.kid}`,
  )
  relay.pacing.pushes.take(clock.monotonic())
  const ttlSecs = Math.ceil((push.goodUntil - clock.now()) / 1000)
  const frame: RelayPush = {
    type: 'push',
    handle,
    ...content,
    priority: null,
    ttlSecs,
    ping: registration.isPing ? true : null,
  }
  const result = await answerTo(relay, frame, { watch, goodUntil: push.goodUntil })
  await follow(ctx, relay, { ...registration, handle }, result)
  if (result === 'delivered') await noteDelivery(db, push.device, clock.now())
  return result
}

/** Like `Watch`; `sealed` reports the size of the message. */
export type DeliveryWatch = (step: Parameters<Watch>[0] | 'register' | 'sealed', detail: string) => void

/**
 * Returns the handle of a device, after asking for one if the device has none yet, so that a new device gets the push.
 * Returns null if the relay does not grant one now: pushes to other devices must not wait for it.
 */
async function awaitedHandle(ctx: Context, relay: Relay, registration: PushRegistration): Promise<string | null> {
  const isThrottled = () => relay.pacing.registrations.waitMillis(ctx.clock.monotonic()) > 0
  if (isThrottled() || !(await isHandleOrdered(ctx.db, registration.token))) return null
  try {
    return await obtainHandle(ctx, relay, registration)
  } catch (error) {
    const isOwn = error instanceof RelayRefused || error instanceof RelayUnanswered
    if (isOwn || (error instanceof RelayWait && isThrottled())) return null
    throw error
  }
}

const noContent: SealedPush = { kid: 0, enc: '', ct: '' }

async function contentFor(
  ctx: Context,
  { isPing, publicKey }: PushRegistration,
  { kid, message }: OrderedPush,
): Promise<SealedPush | PushResult> {
  if (isPing) return noContent
  const sender = await (kid === null ? ctx.db.transaction((tx) => fanOutSender(ctx, tx)) : senderNumbered(ctx, kid))
  if (sender === null) return 'unsealed'
  const sealed = await sealFor(sender, publicKey, message)
  if (sealed !== null) return sealed
  ctx.log.error('push dropped: too large to pad', { detail: message.type })
  return 'tooLarge'
}

async function answerTo(
  { client }: Relay,
  frame: RelayPush,
  options: Parameters<RelayClient['ask']>[1],
): Promise<PushResult> {
  try {
    const answer = await client.ask(frame, options)
    return answer.type === 'pushed' ? answer.outcome : answer.type === 'throttled' ? 'throttled' : 'malformed'
  } catch (error) {
    if (error instanceof RelayUnanswered) return 'unanswered'
    if (error instanceof RelayRefused) return 'malformed'
    if (error instanceof RelayTooLate) return 'expired'
    throw error
  }
}

async function follow(
  ctx: Context,
  { pacing }: Relay,
  registration: PushRegistration & { handle: string },
  result: PushResult,
): Promise<void> {
  if (result === 'throttled') pacing.pushes.empty(ctx.clock.monotonic())
  if (result === 'unregistered') await forget(ctx, registration)
  if (result === 'unknownHandle') await renew(ctx, registration)
}

/** Delete a registration whose token is no longer valid, unless the device has registered again meanwhile. */
const forget = ({ db }: Context, { owner, deviceId, handle }: PushRegistration): Promise<void> =>
  db.transaction(async (tx) => {
    if ((await findRegistration(tx, { owner, deviceId }))?.handle === handle)
      await deleteRegistrations(tx, owner, [deviceId])
  })

/**
 * Ask for another handle if the relay does not know the present one; at most once an hour, because the relay may have
 * lost all handles.
 */
const renew = (ctx: Context, { owner, deviceId, handle }: PushRegistration & { handle: string }): Promise<void> =>
  ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now()
    const registration = await findRegistration(tx, { owner, deviceId })
    if (registration?.handle !== handle) return
    if (registration.renewedAt !== null && ageOf(registration.renewedAt, now) < RENEWAL_MILLIS) return
    await clearHandle(tx, registration.token)
    await updateRenewed(tx, registration, now)
    await orderHandle(ctx, tx, registration)
  })
