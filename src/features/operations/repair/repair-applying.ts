/**
 * Carries out a planned repair. First the evidence is written to the disk. Then the repository is built beside the
 * damaged one, as in an import, and one transaction puts it in place, with a new commit and its `#sync`. If the process
 * ends at any point, the account has one of the two repositories whole, and the same command continues.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import { unthrottled } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { decode, type DataObject } from '../../../protocol/cbor.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import { signCommit, unsignedCommit } from '../../../protocol/commit.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { buildTree } from '../../../protocol/mst.ts'
import { settledKeyOf, settledTransaction } from '../../identity/account-keys/account-keys.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { blobHealth, replaceBlobReferences } from '../../data/blobs/blobs.ts'
import { headSeq, raiseSeq, sequenceEvents } from '../../data/firehose/firehose.ts'
import {
  adoptRepo,
  nextRev,
  rawParts,
  repoHead,
  stageBlocks,
  stageRepo,
  subjectOf,
  syncEvent,
  type NewRecord,
} from '../../data/repo/repo.ts'
import { refreshFindings } from '../integrity/integrity.ts'
import type { BackupSources } from './backup-sources.ts'
import { keepEvidence } from './evidence.ts'
import { inOrder, type RepairPlan } from './repair-plan.ts'
import { boundedPages, deleteEvents } from './row-store.ts'

const PAGE = 500
const EVENTS_AT_ONCE = 500

export interface Repaired {
  rev: Tid
  head: Cid
  /** The file with the rows as they were. */
  evidence: string
  blobs: Awaited<ReturnType<typeof blobHealth.mend>>
  /** What the running check finds afterwards. */
  faults: string[]
}

export interface RepairChoices {
  /** Accept the loss of what no source has. */
  acceptLoss: boolean
  /** Whether records come back that may have been deleted since; null if the operator has not decided. */
  keepUncertain: boolean | null
  /** Where bytes of blobs may be found, besides the mirror. */
  blobSource: BackupSources['blobs'] | null
}

/** Throws `OperatorError` if the repair would lose something without `acceptLoss`, or the repository has changed. */
export async function applyRepair(ctx: Context, plan: RepairPlan, choices: RepairChoices): Promise<Repaired> {
  const { did, records, pool } = plan
  refuseUndecided(plan, choices)
  if (choices.keepUncertain === false) for (const path of plan.uncertain) records.delete(path)
  const rev = nextRev(ctx, plan.newestRev)
  const note = { did, repoId: plan.repoId, rev, at: ctx.clock.now() }
  const evidence = await keepEvidence(ctx, note, plan.brokenEvents)
  const nodes: Block[] = []
  const entries = inOrder(records)
  const data = buildTree(
    entries.map(([path, { cid }]) => [path, cid] as const),
    (block) => nodes.push(block),
  )
  const references: { record: string; cid: string }[] = []
  let head: Cid | null = null
  if (plan.repo === null && plan.repoId !== null && ctx.db.dialect.name === 'sqlite')
    await ctx.db.transaction((tx) => rawParts.skipNumbers(tx, rev, rawParts.noFreshNodes))
  await stageRepo(ctx, rev, async (id) => {
    for (let at = 0; at < nodes.length; at += PAGE)
      await stageBlocks(ctx, id, rev, { nodes: nodes.slice(at, at + PAGE), records: [] })
    const newRecords = Iterator.from(entries).map(([path, { cid, written }]): NewRecord => {
      const value = pool.get(cid)!
      const content = contentOf(value)
      if (content !== null) for (const blob of blobCids(content)) references.push({ record: path, cid: blob })
      const subject = content && subjectOf(path.split('/', 1)[0]!, content)
      return { path, cid, subject, value, ...(written && { written }) }
    })
    for (const page of boundedPages(newRecords, ({ value }) => value.length))
      await stageBlocks(ctx, id, rev, { nodes: [], records: page })
    await settledTransaction(ctx, did, async (tx) => {
      head = await adopt(ctx, tx, plan, { id, rev, data, references, nodes: nodes.length })
    })
  })
  ctx.log.warn('repository repaired', { did, rev, file: evidence })
  const blobs = await blobHealth.mend(ctx, did, choices.blobSource, unthrottled)
  return { rev, head: head!, evidence, blobs, faults: await refreshFindings(ctx, did) }
}

/** Throws `OperatorError` unless the operator has decided about what is lost and what comes back. */
export function refuseUndecided(
  { losses, uncertain }: { losses: readonly string[]; uncertain: readonly string[] },
  { acceptLoss, keepUncertain }: RepairChoices,
): void {
  if (losses.length > 0 && !acceptLoss)
    throw new OperatorError(
      `the repair would lose ${losses.length} things that no source has: name another source, or add --accept-loss`,
    )
  if (uncertain.length > 0 && keepUncertain === null)
    throw new OperatorError(
      `${uncertain.length} records of the other source may have been deleted since: add --keep-uncertain or --drop-uncertain`,
    )
}

/** A signed block may hold anything; one that is not a record refers to nothing. */
function contentOf(value: Uint8Array): DataObject | null {
  try {
    const content = decode(value)
    return typeof content === 'object' && content !== null ? (content as DataObject) : null
  } catch (error) {
    if (error instanceof Malformed) return null
    throw error
  }
}

interface Built {
  id: number
  rev: Tid
  data: Cid
  references: readonly { record: string; cid: string }[]
  nodes: number
}

async function adopt(
  ctx: Context,
  tx: Tx,
  { did, repo, repoId, records, brokenEvents }: RepairPlan,
  { id, rev, data, references, nodes }: Built,
): Promise<Cid> {
  const present = await repoHead(tx, did)
  if (present?.rev !== repo?.rev) throw new OperatorError('the repository was written to during the repair: repeat it')
  const status = await accountStatus(tx, did)
  const key = await settledKeyOf(ctx, tx, did)
  if (status === null || key === null) throw new OperatorError(`${did} no longer has an account here`)
  const head = signCommit(unsignedCommit(did, rev, data), key)
  await replaceBlobReferences(tx, { did, rev, now: ctx.clock.now(), batches: [references] })
  const state = { rev, head: head.cid, data, commitBlock: head.bytes }
  await adoptRepo(tx, did, id, state, { records: records.size, nodes })
  if (repo === null && repoId !== null) {
    await rawParts.copyTakedowns(tx, { from: repoId, to: id })
    await rawParts.disownOrphan(tx, repoId, rev, rawParts.noFreshNodes)
  }
  if (brokenEvents.length > 0) {
    await raiseSeq(tx, await headSeq(tx))
    for (let at = 0; at < brokenEvents.length; at += EVENTS_AT_ONCE)
      await deleteEvents(tx, did, brokenEvents.slice(at, at + EVENTS_AT_ONCE))
  }
  // No #sync for an inactive account: activation will emit one.
  if (status === 'active') await sequenceEvents(ctx, tx, [syncEvent(did, rev, head)])
  return head.cid
}
