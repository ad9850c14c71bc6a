/** The durable step that performs a move, stage after stage, until the move waits for the holder or is done. */
import { HOUR_SECS, MINUTE_MILLIS, MINUTE_SECS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { storageFaultOf } from '../../../platform/files/storage-faults.ts'
import { StepPostponed, type StepKind } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, accountStatus, scheduleDeletion } from '../accounts/accounts.ts'
import { findMove, updateMove, type Move, type MoveState } from './move-store.ts'
import { isDamaged, performers, yieldTurn } from './move-stages.ts'
import { OldHostAway, OldSessionEnded } from './old-host.ts'
import { oldHostOf } from './old-host-access.ts'

/** Length of a turn, after which other moves get theirs. Much less than the time of one try of the step. */
const TURN_MILLIS = 30_000
/** Moves that run at the same time. Each holds one connection to another server. */
const CONCURRENT_MOVES = 8
/** Wait between checks whether the takedown of an account has been lifted. */
const TAKEN_DOWN_WAIT_MILLIS = 10 * MINUTE_MILLIS
/** Wait between tries of content that arrives damaged. */
const DAMAGED_WAIT_MILLIS = 5000
/** The archive of a large repository takes minutes to arrive. */
const MAX_TRY_MILLIS = 4 * MINUTE_MILLIS

export const moveStep: StepKind<Record<string, never>> = {
  name: 'move-in',
  concurrency: CONCURRENT_MOVES,
  maxTryMillis: MAX_TRY_MILLIS,
  maxSteps: 10_000,
  // The holder may cancel the move; an account that has not moved in three days is deleted with its step.
  maxTries: null,
  firstWaitSecs: 2,
  maxWaitSecs: 10 * MINUTE_SECS,
  async take(ctx, { did }) {
    const endsAt = ctx.clock.monotonic() + TURN_MILLIS
    const isOver = () => ctx.clock.monotonic() > endsAt
    while (did !== null && (await performNext(ctx, did, isOver))) if (isOver()) yieldTurn()
  },
}

/** Add the step that continues a move after the commit. */
export const addMoveStep = ({ steps }: Context, tx: Tx, did: Did): Promise<void> =>
  steps.add(tx, moveStep, { key: did, did, payload: {} })

/** Whether the move waits for the holder. */
export const isWaiting = ({ stage, halted }: Move): boolean => halted !== null || !Object.hasOwn(performers, stage)

/** Returns false if there is nothing to perform. */
async function performNext(ctx: Context, did: Did, isOver: () => boolean): Promise<boolean> {
  const move = await findMove(ctx.db, did)
  if (move === null || isWaiting(move)) return false
  // Otherwise the identity would name a server that shows nothing of the account, although the old server would still
  // serve it.
  if ((await accountStatus(ctx.db, did)) === 'takendown')
    throw new StepPostponed('the account is taken down', TAKEN_DOWN_WAIT_MILLIS)
  const perform = performers[move.stage as keyof typeof performers]
  try {
    const changes = await perform({ ctx, move, host: oldHostOf(ctx, move), isOver })
    await store(ctx, move, { ...move, tries: 0, fault: null, ...changes })
  } catch (error) {
    if (error instanceof StepPostponed) throw error
    if (error instanceof OldSessionEnded) {
      await store(ctx, move, { ...move, halted: 'sign-in', fault: `${error.message}.` })
      return false
    }
    // Reads the row again, because the stage may have stored that it sent an operation.
    const now = (await findMove(ctx.db, did)) ?? move
    await store(ctx, move, { ...now, tries: now.tries + (isDamaged(error) ? 1 : 0), fault: wordsOf(error) })
    if (error instanceof OldHostAway && error.waitSecs !== null)
      throw new StepPostponed(error.message, Math.min(error.waitSecs, HOUR_SECS) * 1000)
    // The stage counts these tries itself, for each blob. If they counted as failures of the step, all later waits
    // would be longer.
    if (isDamaged(error)) throw new StepPostponed((error as Error).message, DAMAGED_WAIT_MILLIS)
    throw error
  }
  return true
}

async function store(ctx: Context, move: Move, state: MoveState): Promise<void> {
  const now = ctx.clock.now()
  if (state.stage !== 'submission') return void (await updateMove(ctx.db, move, state, now))
  await ctx.db.transaction(async (tx) => {
    if ((await updateMove(tx, move, state, now)) > 0) await keepAccount(ctx, tx, move.did)
  })
}

/**
 * Cancel the deletion of the account: from now on its identity may name this server, and it must not be deleted for
 * moving too slowly.
 */
export async function keepAccount(ctx: Context, tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  if (account !== null) await scheduleDeletion(ctx, tx, account, null)
}

/** Words for the holder while the server tries again by itself. */
function wordsOf(error: unknown): string {
  if (error instanceof OldHostAway) return `${error.message} This server tries again by itself.`
  if (error instanceof PlcDirectoryError)
    return 'The directory of identities does not answer. This server tries again by itself.'
  if (storageFaultOf(error) !== null)
    return 'This server has no room at the moment. It tries again by itself; tell its operator.'
  return isDamaged(error)
    ? 'The old server sent something unusable, or broke off. This server tries again by itself.'
    : 'Something went wrong on this server. It tries again by itself.'
}
