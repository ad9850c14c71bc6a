/**
 * Operations that were **sent** to the PLC directory. Each is **settled** once the directory has it, **refused** once
 * the directory said no, and of **unknown** outcome until one of the two is certain: a response may be lost, and an
 * operation may arrive long after the client has given up waiting.
 *
 * - After a failure the log of the DID decides (`submitOperation`). A directory also refuses an operation that it
 *   already has, so a refusal alone does not mean that the operation has failed.
 * - An operation of unknown outcome may still arrive for `DOUBT_MILLIS`. Until then a refusal of the same operation
 *   does not count, because an earlier submission of it may still take effect.
 *
 * Sign-ups and handle changes keep their name claimed while they are in doubt (`name-claims.ts`), a key rotation keeps
 * its account from signing (`repo-keys/key-settlement.ts`), a ceremony keeps to its identity (`ceremony/ceremony.ts`),
 * a child keeps its rows (`children/child-making.ts`), and what holders submit themselves has a step that looks for it
 * (`account-changes/told-operation.ts`).
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { PlcDirectoryError, type PlcDirectory } from '../../../platform/network/directory-client.ts'
import { KeyedLock } from '../../../platform/running/keyed-lock.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { isSameOperation, operationCid, type LogOperation } from '../../../protocol/plc.ts'
import { forgetOwnOperation, noteOwnOperation } from './own-operation-store.ts'

/**
 * Runs one operation of this server at a time for each identity, from reading the log to the answer. Of two concurrent
 * operations, the directory would drop the one whose key has the lower rank.
 */
export const identityTurns = perContext((ctx) => new KeyedLock(ctx, 'identity change'))

/** How long an operation that got no answer may still arrive at the directory. */
const DOUBT_MILLIS = MINUTE_MILLIS

/** Until when an operation that was sent at `sentAt` and got no answer may still arrive. */
export const doubtUntil = (sentAt: Millis): Millis => sentAt + DOUBT_MILLIS

/**
 * Call it before a refusal counts. `unansweredAt` is when the operation was last sent without an answer, or null.
 * Throws `PlcDirectoryError` while that submission may still arrive. A time in the future was written before the clock
 * was set back, and is ignored.
 */
export function requireNoDoubt(unansweredAt: Millis | null, now: Millis): void {
  if (unansweredAt !== null && unansweredAt <= now && now < doubtUntil(unansweredAt))
    throw new PlcDirectoryError(null, 'an earlier submission of the operation may still arrive')
}

/**
 * The place in the log where the operation proves that the directory has it: the newest entry, or the first one if
 * others may have changed the identity since.
 */
type Place = 'newest' | 'first'

const entryAt: Readonly<Record<Place, (plc: PlcDirectory, did: Did) => Promise<LogOperation | null>>> = {
  newest: (plc, did) => plc.lastOperation(did),
  first: async (plc, did) => (await plc.auditLog(did))?.[0]?.operation ?? null,
}

/**
 * Submit an operation to the directory. If the submission fails, the log of the DID decides whether the operation has
 * arrived. If it has not, throws the `PlcDirectoryError` of the submission. If the log cannot be read, throws a
 * `PlcDirectoryError` without a status, because a failed read says nothing about the operation.
 */
export async function submitOperation(
  ctx: Submitting,
  did: Did,
  operation: LogOperation,
  place: Place = 'newest',
): Promise<void> {
  const { plc } = ctx
  const isNew = await noteAsOwn(ctx, did, operation)
  try {
    await plc.submit(did, operation)
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    const entry = await unjudged(entryAt[place](plc, did))
    if (entry !== null && isSameOperation(entry, operation)) return
    // If the directory refused an operation that was not signed here, and has it later, someone else has submitted it.
    if (isNew && verdictOf(error) !== 'unknown')
      await forgetOwnOperation(ctx.db, did, operationCid(operation).toString())
    throw error
  }
}

type Submitting = Pick<Context, 'plc' | 'db' | 'clock' | 'config'>

/**
 * Note that an operation comes from this server, before anyone else has it, so that the identity watch does not report
 * it as foreign. Operations are noted even while the watch is off, because it may be switched on later. Genesis
 * operations are not noted: the watch compares later operations with them. Returns false if the operation was already
 * noted.
 */
export async function noteAsOwn(
  { db, clock, config }: Pick<Context, 'db' | 'clock' | 'config'>,
  did: Did,
  operation: LogOperation,
): Promise<boolean> {
  if (operation.prev === null || config.plcDirectoryUrl === null) return false
  return noteOwnOperation(db, did, operationCid(operation).toString(), clock.now())
}

/**
 * Whether identities are compared with the directory. The directory inside a development server has no other writers.
 */
export const isWatching = ({ identityWatch, plcDirectoryUrl }: Config): boolean =>
  identityWatch.intervalSecs > 0 && plcDirectoryUrl !== null

const unjudged = <Value>(read: Promise<Value>): Promise<Value> =>
  read.catch((error: unknown) => {
    throw error instanceof PlcDirectoryError ? new PlcDirectoryError(null, error.message, { cause: error }) : error
  })

/**
 * What the failure of a submission says about the operation.
 *
 * - `invalid`: the directory has rejected the operation and will never accept it.
 * - `refused`: it did not take effect.
 * - `postponed`: it did not take effect, and the directory asks to try again.
 * - `unknown`: it may have taken effect, or may still take effect.
 */
type Verdict = 'invalid' | 'refused' | 'postponed' | 'unknown'

/** Verdicts by HTTP status of the directory. Any other 4xx is a refusal. */
const verdicts: Readonly<Record<number, Verdict>> = { 400: 'invalid', 408: 'postponed', 429: 'postponed' }

/** The verdict on an operation, from the error that `submitOperation` has thrown. Any other error is `unknown`. */
export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof PlcDirectoryError) || error.status === null) return 'unknown'
  return verdicts[error.status] ?? (error.status >= 400 && error.status < 500 ? 'refused' : 'unknown')
}
