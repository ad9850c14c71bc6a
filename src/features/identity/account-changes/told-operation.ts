/**
 * PLC operations that a holder submits. Once an operation is in the directory, the network and the holder are notified.
 * The process may die after sending it, or the response may be lost, so a durable step is stored first. The step looks
 * for the operation in the log of the DID, and notifies if the request could not.
 *
 * The step never submits an operation: if the operation never arrives, the holder has to repeat the request.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { requestOrigin, type Origin } from '../../../http/origin.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { isStepWaiting, StepPostponed, withdrawStep, type StepKind } from '../../../platform/running/steps.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { operationCid, type Operation } from '../../../protocol/plc.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { announceIn, type By } from '../account-events/account-events.ts'
import { accountNotFound, accountOf } from '../accounts/accounts.ts'
import { doubtUntil, resolveDid, submitOperation, verdictOf } from '../identity/identity.ts'

/**
 * Which event to announce while it is unknown whether the operation has arrived, by the event to announce once it has.
 */
const doubts = { ownKeyAdded: 'ownKeyInDoubt', identityChanged: 'identityInDoubt' } as const
type ToldEvent = keyof typeof doubts

interface ToldOperation {
  cid: string
  /** CID of the operation before it, which the log of the DID has. */
  prev: string | null
  event: ToldEvent
  sentAt: Millis
  origin: Origin
}

/** Within this time, the request itself notifies about most operations. */
const FIRST_LOOK_SECS = 2
const NEXT_LOOK_MILLIS = 5000

export const toldOperationStep: StepKind<ToldOperation> = {
  name: 'told-operation',
  concurrency: 4,
  maxSteps: 10_000,
  maxTries: 200,
  firstWaitSecs: 5,
  maxWaitSecs: 600,
  async take(ctx, { did, payload: { cid, prev, event, sentAt, origin }, end }) {
    if (did === null) return
    const log = (await ctx.plc.auditLog(did)) ?? []
    if (!log.some((entry) => entry.cid === cid)) {
      if (!log.some((entry) => entry.cid === prev)) throw new PlcDirectoryError(200, 'the log of the DID is incomplete')
      const now = ctx.clock.now()
      // A time that is further ahead was written before the clock was set back.
      if (now < doubtUntil(sentAt) && sentAt < doubtUntil(now))
        throw new StepPostponed('the operation may still reach the directory', NEXT_LOOK_MILLIS)
      ctx.log.info('identity operation never reached the directory', { did })
      return
    }
    await ctx.db.transaction(async (tx) => {
      if (await end(tx)) await tell(tx, { ctx }, did, event, origin)
    })
    await resolveDid(ctx, did, { live: true })
  },
}

/** If the account was deleted in the meantime, its deletion stays the last event that subscribers get. */
async function tell(
  tx: Tx,
  by: By,
  did: Did,
  event: ToldEvent | (typeof doubts)[ToldEvent],
  origin?: Origin,
): Promise<boolean> {
  if (!(await accountOf(tx, did))) return false
  await sequenceEvents(by.ctx, tx, [{ type: 'identity', did }])
  await announceIn(tx, by, event, did, origin && { origin })
  return true
}

/**
 * Submit an operation for its holder, and notify the network and the holder of it. Throws what `submitOperation`
 * throws, and `AccountNotFound` if the account was deleted in the meantime. If the outcome is unknown, the holder is
 * notified of that.
 */
export async function submitAndTell(
  exchange: Exchange,
  did: Did,
  operation: Operation,
  event: ToldEvent,
): Promise<void> {
  const { ctx } = exchange
  const cid = operationCid(operation).toString()
  const key = `${did} ${cid}`
  const isFirst = await ctx.db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    const isFirst = !(await isStepWaiting(tx, toldOperationStep, key))
    await ctx.steps.add(tx, toldOperationStep, {
      key,
      did,
      payload: { cid, prev: operation.prev, event, sentAt: ctx.clock.now(), origin: requestOrigin(exchange) },
      waitSecs: FIRST_LOOK_SECS,
    })
    return isFirst
  })
  try {
    await submitOperation(ctx, did, operation)
  } catch (error) {
    await afterFailure(exchange, did, { key, event, isFirst, error })
    throw error
  }
  const isTold = await ctx.db.transaction(async (tx) =>
    // If the step no longer exists, it has already notified them.
    (await withdrawStep(tx, toldOperationStep, key)) > 0
      ? tell(tx, exchange, did, event)
      : (await accountOf(tx, did)) !== null,
  )
  if (!isTold) throw accountNotFound()
  await resolveDid(ctx, did, { live: true })
}

interface Failure {
  key: string
  event: ToldEvent
  /** Whether no earlier submission of this operation can still arrive. */
  isFirst: boolean
  error: unknown
}

function afterFailure(exchange: Exchange, did: Did, { key, event, isFirst, error }: Failure): Promise<void> {
  return exchange.ctx.db.transaction(async (tx) => {
    if (verdictOf(error) === 'unknown') await tell(tx, exchange, did, doubts[event])
    else if (isFirst) await withdrawStep(tx, toldOperationStep, key)
  })
}
