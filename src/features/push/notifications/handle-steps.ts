/**
 * Handles, by which the relay knows devices. A handle belongs to the token of a device, so the registrations of several
 * accounts on one phone share it. If the relay is asked again, the new handle replaces the old one for all of them.
 */
import { createHash } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { isStepWaiting, withdrawStep, type Step, type StepKind } from '../../../platform/running/steps.ts'
import {
  isHandleInUse,
  isTokenRegistered,
  needsHandle,
  setHandle,
  type PushRegistration,
} from './push-registration-store.ts'
import { RelayRefused, RelayUnanswered, RelayWait, type Watch } from './relay-client.ts'
import { inTurn, isAtRelay, relayOf, type Relay } from './relay.ts'

/** The relay's data about a token. */
type Addressee = Pick<PushRegistration, 'token' | 'topic'>

type HandleOrder = ({ ask: 'register' } & Addressee) | { ask: 'drop'; handle: string }

const UNANSWERED_WAIT_SECS = 60

/**
 * Owners take turns in this queue, so that no owner fills it. It is separate from the queue of pushes, because the
 * relay grants far fewer registrations than pushes: devices that register must not delay pushes that a user is waiting
 * for.
 */
export const handleStep: StepKind<HandleOrder> = {
  name: 'push-handle',
  concurrency: 1,
  inOrder: true,
  maxSteps: 2000,
  // No limit, because a relay that is down comes back.
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  isReady: isAtRelay,
  isFinal: (error) => error instanceof RelayRefused,
  async take(ctx, step) {
    const relay = relayOf(ctx)
    if (relay === null) return
    const { payload } = step
    try {
      await inTurn(relay, () =>
        payload.ask === 'register' ? register(ctx, relay, payload) : drop(ctx, relay, payload.handle),
      )
    } catch (error) {
      if (!(error instanceof RelayUnanswered)) throw error
      await toTheEnd(ctx, step)
    }
  },
}

/** The relay may be unable to answer a request about this one device, so let the steps behind it go first. */
async function toTheEnd({ db, steps, log }: Context, { key, share, payload, end }: Step<HandleOrder>): Promise<void> {
  log.warn('no response from the push relay to a registration; will retry', { stepKind: handleStep.name })
  await db.transaction(async (tx) => {
    if (await end(tx)) await steps.add(tx, handleStep, { key, share, payload, waitSecs: UNANSWERED_WAIT_SECS })
  })
}

/** Key and share of a step, hashed, so that the list of steps shows no token, handle or owner. */
const keyOf = (text: string) => createHash('sha256').update(text).digest('base64url')

type Steps = Pick<Context, 'config' | 'steps'>

// Ordering

/**
 * Ask the relay for the handle of a token, once the transaction is durable. Replaces a request that is still waiting.
 */
export async function orderHandle(
  { steps }: Steps,
  tx: Tx,
  { owner, token, topic }: Addressee & Pick<PushRegistration, 'owner'>,
): Promise<void> {
  await steps.add(tx, handleStep, {
    key: keyOf(token),
    share: keyOf(owner),
    payload: { ask: 'register', token, topic },
  })
}

/** Whether a request for the handle of a token is waiting. */
export const isHandleOrdered = (reader: Reader, token: string): Promise<boolean> =>
  isStepWaiting(reader, handleStep, keyOf(token))

/**
 * Call after a registration was deleted. If no other registration has its token, withdraws the request for a handle; if
 * none has its handle, asks the relay to drop that.
 */
export async function releaseHandle(
  ctx: Steps,
  tx: Tx,
  { owner, token, handle }: Pick<PushRegistration, 'owner' | 'token' | 'handle'>,
): Promise<void> {
  if (!(await isTokenRegistered(tx, token))) await withdrawStep(tx, handleStep, keyOf(token))
  if (handle !== null && !(await isHandleInUse(tx, handle))) await orderDrop(ctx, tx, handle, keyOf(owner))
}

async function orderDrop({ config, steps }: Steps, tx: Tx, handle: string, share = ''): Promise<void> {
  if (config.notifications.relay !== null)
    await steps.add(tx, handleStep, { key: keyOf(handle), share, payload: { ask: 'drop', handle } })
}

// Asking

async function register(ctx: Context, relay: Relay, addressee: Addressee): Promise<void> {
  // A push for a device without a handle may have asked already.
  if (await needsHandle(ctx.db, addressee.token)) await obtainHandle(ctx, relay, addressee)
}

/**
 * Ask the relay for the handle of a token, and give it to every registration that has the token. Returns the handle.
 * Throws what `RelayClient.ask` throws.
 */
export async function obtainHandle(
  ctx: Context,
  { client, pacing }: Relay,
  { token, topic }: Addressee,
  watch?: Watch,
): Promise<string> {
  const { clock, db } = ctx
  const { registrations } = pacing
  if (!registrations.take(clock.monotonic()))
    throw new RelayWait(
      'devices register no faster than the push relay allows',
      registrations.waitMillis(clock.monotonic()),
    )
  const answer = await client.ask({ type: 'registerHandle', apnsToken: token, apnsTopic: topic }, { watch })
  if (answer.type === 'throttled')
    throw new RelayWait(
      'the push relay registers no more devices at the moment',
      registrations.empty(clock.monotonic()),
    )
  if (answer.type !== 'handle') throw new RelayRefused(`the push relay responded to a registration with ${answer.type}`)
  const { handle } = answer
  await db.transaction(async (tx) => {
    // The last registration with this token may have ended while the relay was answering.
    if ((await setHandle(tx, token, handle)) === 0) await orderDrop(ctx, tx, handle)
  })
  return handle
}

async function drop({ db, clock }: Context, { client, pacing }: Relay, handle: string): Promise<void> {
  if (await isHandleInUse(db, handle)) return
  const { type } = await client.ask({ type: 'dropHandle', handle })
  if (type === 'throttled')
    throw new RelayWait(
      'the push relay drops no more handles at the moment',
      pacing.registrations.empty(clock.monotonic()),
    )
  if (type !== 'ok') throw new RelayRefused(`the push relay responded to the end of a registration with ${type}`)
}
