/**
 * The door of repositories: creating, changing and reading them.
 *
 * A repository has three kinds of blocks. The commit is stored in the row of its repository, tree nodes by CID, and
 * records by path. Equal records at two paths are stored twice, so no stored block is ever shared.
 */
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { carOf, type Block } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import type { RepoEvent } from '../../../protocol/frames.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { nextRecordKey, syncEvent } from './commit-writer.ts'
import { newestCommitEvent } from '../firehose/firehose.ts'
import { noFreshNodes, readableNodes } from './fresh-nodes.ts'
import { recordBytes, recordValue, setLargeRecordsAside } from './large-records.ts'
import { StoredNodes } from './node-store.ts'
import { prepareRecord } from './record-preparation.ts'
import {
  anyRecordUpTo,
  copyTakedowns,
  countRecords,
  LAST_PATH,
  listAllRecords,
  listRecordsSince,
  updateRecordTakedown,
  type StoredRecord,
  newestWriteOf,
} from './record-store.ts'
import {
  type RepoHead,
  countTakedown,
  disownOrphan,
  disownRepo,
  findCounts,
  findRevision,
  headWithRecord,
  keepCounts,
  recordTotal,
  recordTotalOf,
  repoHead,
  skipNumbers,
} from './repo-store.ts'
import { repoFaults } from './repo-verification.ts'
import { secondOpinion } from './second-opinion.ts'
import { pathBlocks, recentNodes } from './tree-nodes.ts'

export { sectionsOf } from './commit-blocks.ts'
export { createRepo, nextRev, resignHead, syncEvent } from './commit-writer.ts'
export { repoBlocks } from './repo-blocks.ts'
export { requireConfirmedAddress } from './record-writing.ts'
export { subjectOf } from './record-preparation.ts'
export { adoptRepo, stageBlocks, stageRepo } from './repo-staging.ts'
export { readRecord, type NewRecord, type StoredRecord } from './record-store.ts'
export { editionBeside, repoHead, repoHeads, repoHeadsOf, type RepoHead } from './repo-store.ts'

/** For records outside of repositories, such as those in spaces: how to make their keys and their blocks. */
export const newRecords = { nextKey: nextRecordKey, prepare: prepareRecord }

/** How many records an account has; and as SQL, the same number and when the newest record was stored. */
export const recordTotals = { read: recordTotal, within: recordTotalOf, newestWithin: newestWriteOf }

/** What is wrong with a stored repository, according to our own code and to independent code. */
export const repoChecks = { faults: repoFaults, secondOpinion }

/** Events of a repository for the network: those of its creation, and that of a state not yet announced. */
export const repoNews = { opening: openingEvents, untoldState }

/** For repairs and copies, which work on single rows. */
export const rawParts = {
  noFreshNodes,
  readableNodes,
  copyTakedowns,
  disownOrphan,
  skipNumbers,
  recordValue,
  recordBytes,
  setLargeRecordsAside,
}

/**
 * Head, revision and numbers of stored blocks and records; null if the account has no repository. If the row has no
 * counts yet, the rows are counted and the counts stored.
 */
export async function repoTotals(
  ctx: Context,
  did: Did,
): Promise<{ head: Cid; rev: Tid; blocks: number; records: number } | null> {
  const { db } = ctx
  const repo = await repoHead(db, did)
  if (repo === null) return null
  const kept = await findCounts(db, repo.id)
  const counts =
    kept.records !== null && kept.nodes !== null
      ? { records: kept.records, nodes: kept.nodes }
      : await db.snapshot(async (reader) => ({
          records: await countRecords(reader, repo.id),
          nodes: await new StoredNodes(reader, repo.id).count(),
        }))
  if (kept.records === null || kept.nodes === null)
    ctx.background.run('counts of a repository', () => keepCounts(db, repo, counts))
  return { head: repo.head, rev: repo.rev, blocks: 1 + counts.nodes + counts.records, records: counts.records }
}

/**
 * Returns the events that `createRepo` returned, for an account that is announced later. Nothing may have been written
 * to the repository since then.
 */
async function openingEvents(ctx: Context, tx: Tx, did: Did): Promise<RepoEvent[]> {
  const { repo, blocks } = (await recordProof(ctx, tx, did, 'a/a'))!
  const commit = { cid: repo.head, bytes: repo.commitBlock }
  const archive = carOf(repo.head, blocks)
  return [
    { type: 'commit', did, commit: repo.head, rev: repo.rev, since: null, blocks: archive, ops: [], prevData: null },
    syncEvent(did, repo.rev, commit),
  ]
}

/**
 * Returns the present state of a repository as a `#sync` event; null if the newest commit or state in the log is of the
 * same revision. While the account is taken down, its head may be signed with another key, which the network learns
 * when the takedown is lifted.
 */
async function untoldState(reader: Reader, did: Did): Promise<RepoEvent | null> {
  const repo = await repoHead(reader, did)
  if (repo === null || (await newestCommitEvent(reader, did))?.rev === repo.rev) return null
  return syncEvent(did, repo.rev, { cid: repo.head, bytes: repo.commitBlock })
}

/** Delete the repository at once; the `abandoned-repos` sweep deletes its rows. */
export async function deleteRepo(tx: Tx, did: Did): Promise<void> {
  await disownRepo(tx, did)
}

/**
 * Records written after a revision, oldest commit first. Returns none if all records are later than `rev`: then the
 * repository has just moved here, and its revisions do not tell what others knew before.
 */
export async function recordsSince(reader: Reader, did: Did, rev: Tid, limit: number): Promise<StoredRecord[]> {
  const repo = await findRevision(reader, did)
  if (repo === null || repo.rev <= rev || !(await anyRecordUpTo(reader, repo.id, rev))) return []
  return listRecordsSince(reader, repo.id, { rev, path: LAST_PATH }, limit)
}

/** A page of all records, including those taken down, in order of their paths, after `after`. */
export async function recordsOf(
  reader: Reader,
  did: Did,
  after: string,
  limit: number,
): Promise<Pick<StoredRecord, 'path' | 'rev' | 'value'>[]> {
  const repo = await repoHead(reader, did)
  return repo === null ? [] : listAllRecords(reader, repo.id, after, limit)
}

/** Take a record down under `ref`, or restore it if `ref` is null. Returns false if there is no such record. */
export async function setRecordTakedown(
  tx: Tx,
  { did, path, ref }: { did: Did; path: string; ref: string | null },
): Promise<boolean> {
  const repo = await repoHead(tx, did)
  if (repo === null || (await updateRecordTakedown(tx, repo.id, path, ref)) === 0) return false
  await countTakedown(tx, repo.id)
  return true
}

/**
 * Blocks that prove that a record is in the repository, or is not: the commit, the nodes down to its path, the record.
 * Null if the account has no repository.
 */
export async function recordProof(
  ctx: Context,
  reader: Reader,
  did: Did,
  path: string,
): Promise<{ repo: RepoHead; blocks: Block[] } | null> {
  const found = await headWithRecord(reader, did, path)
  if (found === null) return null
  const { repo, record } = found
  const nodes = await pathBlocks(new StoredNodes(reader, repo.id), repo.data, recentNodes(ctx), path)
  return { repo, blocks: [{ cid: repo.head, bytes: repo.commitBlock }, ...nodes, ...(record ? [record] : [])] }
}
