/**
 * Settles which key an identity names after an operation was submitted: the staged key, which then replaces the
 * account's key, or the old one. The step repeats until the directory gives the answer.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Origin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import {
  checkNext,
  headOf,
  SIGNING_KEY_NAME,
  stateOf,
  type AuditEntry,
  type Operation,
  type ValidOperation,
} from '../../../protocol/plc.ts'
import { accountOf } from '../accounts/accounts.ts'
import { announceIn } from '../account-events/account-events.ts'
import { SETTLE_KEY_STEP, signingKeyOf, releaseSigning, replaceSigningKey } from '../account-keys/account-keys.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { identityTurns, requireNoDoubt, resolveDid, submitOperation, verdictOf } from '../identity/identity.ts'
import { resignHead } from '../../data/repo/repo.ts'
import {
  deleteSubmittedKey,
  findStagedKey,
  updateOperation,
  updateUnanswered,
  type StagedKey,
} from './staged-key-store.ts'

interface Settlement {
  /** Origin of the request that submitted the operation. */
  origin: Origin
}

export const settleStep: StepKind<Settlement> = {
  name: SETTLE_KEY_STEP,
  concurrency: 16,
  // If a step is dropped, its account cannot write until its wallet repeats the request.
  maxSteps: 100_000,
  maxTries: null,
  firstWaitSecs: 1,
  maxWaitSecs: 60,
  async take(ctx, { did, payload: { origin } }) {
    const staged = did && (await findStagedKey(ctx.db, did))
    if (did === null || !staged?.operation) return
    const { operation } = staged
    const refusal = await identityTurns(ctx).run(did, () => refusalOfDirectory(ctx, did, staged, operation))
    if (refusal !== null) return undo(ctx, did, staged, refusal)
    await promote(ctx, did, staged, origin)
    await resolveDid(ctx, did, { live: true })
  },
}

/**
 * How long an operation that got no answer is not sent again: the directory could accept both of two concurrent
 * submissions.
 */
const ARRIVAL_MILLIS = 3000

/**
 * Submit the operation unless the directory has it. Returns null if the identity names the key now, or the reason why
 * this operation will never take effect. Throws `PlcDirectoryError` while the outcome is unknown. A refusal does not
 * count while an earlier submission may still arrive.
 */
async function refusalOfDirectory(
  ctx: Context,
  did: Did,
  staged: StagedKey,
  operation: Operation,
): Promise<string | null> {
  const { db, clock } = ctx
  const { signingKey, unansweredAt } = staged
  const { log, head } = await settledLog(ctx, did, staged, operation)
  if (names(head, signingKey)) return null
  const now = clock.now()
  if (head.cid !== operation.prev) {
    // An operation by a higher key could still nullify the one that came first.
    if (checkNext(did, validOperations(log), operation, now).ok) requireNoDoubt(unansweredAt, now)
    return OVERTAKEN
  }
  try {
    // Stored before the operation is sent, because the process may end before the answer arrives.
    await updateUnanswered(db, did, signingKey, now)
    await submitOperation(ctx, did, operation)
    return null
  } catch (error) {
    if (['unknown', 'postponed'].includes(verdictOf(error))) throw error
    // This submission was answered; the previous one may not have been.
    await updateUnanswered(db, did, signingKey, unansweredAt)
    requireNoDoubt(unansweredAt, now)
    return (error as PlcDirectoryError).message
  }
}

const names = ({ operation }: AuditEntry, signingKey: string): boolean =>
  stateOf(operation)?.verificationMethods[SIGNING_KEY_NAME] === signingKey

interface Log {
  log: readonly AuditEntry[]
  head: AuditEntry
}

/**
 * Returns the log once it contains an operation that got no answer, or once that operation has had time to arrive.
 * Throws as `completeLog`.
 */
async function settledLog(
  ctx: Context,
  did: Did,
  { signingKey, unansweredAt }: StagedKey,
  operation: Operation,
): Promise<Log> {
  const first = await completeLog(ctx, did, operation)
  const waitMillis =
    unansweredAt === null ? 0 : Math.min(ARRIVAL_MILLIS, unansweredAt + ARRIVAL_MILLIS - ctx.clock.now())
  if (waitMillis <= 0 || names(first.head, signingKey)) return first
  await pause(waitMillis)
  return completeLog(ctx, did, operation)
}

/**
 * Returns the log. Throws `PlcDirectoryError` if the log lacks the operation named by `prev`, because it is then an old
 * copy.
 */
async function completeLog({ plc }: Context, did: Did, { prev }: Operation): Promise<Log> {
  const log = (await plc.auditLog(did)) ?? []
  const head = headOf(log)
  if (!head || !log.some(({ cid }) => cid === prev))
    throw new PlcDirectoryError(200, 'the log of the DID is incomplete')
  return { log, head }
}

const OVERTAKEN = 'another operation came first'

const validOperations = (log: readonly AuditEntry[]): ValidOperation[] =>
  log
    .filter(({ nullified }) => !nullified)
    .map(({ cid, createdAt, operation }) => ({ cid, createdAt: Date.parse(createdAt), operation }))

/**
 * Replace the account's key by the staged one, and tell the network. The head is signed again, so that the identity and
 * the repository agree from this transaction on. Does nothing if the account was deleted meanwhile.
 */
const promote = (ctx: Context, did: Did, staged: StagedKey, origin: Origin): Promise<void> =>
  ctx.db.transaction(async (tx) => {
    const account = await accountOf(tx, did)
    const before = await signingKeyOf(ctx, tx, did)
    if (!account || !before || (await deleteSubmittedKey(tx, did, staged.signingKey)) === 0) return
    await replaceSigningKey(tx, did, formatDidKey(before.publicKey), staged)
    const sync = await resignHead(ctx, tx, did, (await signingKeyOf(ctx, tx, did))!)
    // No #sync for an inactive account: activation will emit one.
    await sequenceEvents(ctx, tx, [{ type: 'identity', did }, ...(statusOf(account) === 'active' ? [sync] : [])])
    await announceIn(tx, { ctx }, 'signingKeyReplaced', did, { origin })
  })

/** End the hold. The key stays staged, for another operation. */
async function undo(ctx: Context, did: Did, staged: StagedKey, reason: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    if ((await updateOperation(tx, did, staged.signingKey, null)) > 0) await releaseSigning(tx, did)
  })
  ctx.log.warn('signing key not replaced: the operation did not take effect', { did, reason })
}
