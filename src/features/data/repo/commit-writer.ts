/**
 * The only place where repositories change. Everything here runs inside the caller's transaction: the blocks of a
 * commit, its blob references and its event become durable together, or not at all.
 *
 * The commits of a repository have the order of their transactions. A commit replaces the head only if it was built on
 * that head.
 */
import { Refusal } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { together, type Tx } from '../../../platform/database/database.ts'
import { type Block, carOf } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import {
  buildCommit,
  type BuiltCommit,
  type CommitFault,
  type RecordWrite,
  signCommit,
  unsignedCommit,
} from '../../../protocol/commit.ts'
import type { BlobReference } from '../../../protocol/data-model.ts'
import type { RepoEvent } from '../../../protocol/frames.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import { CLOCK_IDS, nextTid } from '../../../protocol/tid.ts'
import { activeSigner } from '../../identity/account-keys/account-keys.ts'
import { refuseRecords, warnOfQuota } from '../../identity/quotas/quotas.ts'
import { applyBlobChanges, blobReferences } from '../blobs/blobs.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { FreshNodes } from './fresh-nodes.ts'
import { deleteLargeRecords, largeAmong, setsLargeAside } from './large-records.ts'
import { changeNodes, StoredNodes } from './node-store.ts'
import {
  countRecords,
  deleteRecords,
  findPathsAbout,
  findRecordCid,
  listRecordsLeftOut,
  makeRoom,
  MAX_UNLISTED,
  putRecords,
} from './record-store.ts'
import { findTree, insertRepo, repoHead, updateHead, updateTree, type StoredTree } from './repo-store.ts'
import { buildOnStored, recentNodes } from './tree-nodes.ts'
import type { Revalidation } from '../../../http/revalidation.ts'

/** A record that is ready to be stored. */
export interface PreparedRecord extends Block {
  blobs: readonly BlobReference[]
  /** Whether it was validated against the lexicon of its type. */
  isValidated: boolean
  /** URI or DID that a like, repost, follow or block is about; null for other records. */
  subject: string | null
}

/**
 * `put` creates or updates, and does nothing if the stored record is the same. A `lenient` delete does nothing if there
 * is no record. A write that does nothing does not check its swap either. `replacesSame` also deletes records of the
 * same collection about the same subject, `MAX_REPLACED` at most.
 */
export type Write = { collection: string; rkey: string; swapRecord?: Cid | null } & (
  | { action: 'create'; record: PreparedRecord; replacesSame?: boolean }
  | { action: 'update' | 'put'; record: PreparedRecord }
  | { action: 'delete'; lenient?: boolean }
)

export interface CommitJob {
  did: Did
  writes: readonly Write[]
  /** CID of the head that the commit must build on; any head if undefined. */
  swapCommit?: Cid
  /** Revalidates the caller. */
  revalidation: Revalidation | null
}

/** The new head, and what the commit changed. */
export interface CommitMeta {
  cid: Cid
  rev: Tid
  ops: BuiltCommit['ops']
  /** Bytes that the account is charged for: the archive in the event, and the stored references to blobs. */
  paidBytes: number
}

/**
 * The only function that changes the records of a repository. Returns the new head, or null if there was nothing to do.
 *
 * Refuses with the lexicon's `InvalidSwap`, with `RepoNotFound` or `RecordNotFound`, with `InvalidRequest` if a record
 * exists, a path is written twice, or the commit is too large, and with `PayloadTooLarge` above the quota of records.
 */
export async function applyCommit(
  ctx: Context,
  tx: Tx,
  { did, writes, swapCommit, revalidation }: CommitJob,
): Promise<CommitMeta | null> {
  const [{ key, maxRecords }, tree] = await together(activeSigner(ctx, tx, did, revalidation), findTree(tx, did))
  const head = present(did, tree)
  const resolved = await resolveWrites(tx, head.id, writes)
  // A write that changes nothing succeeds whatever the head is. An empty batch asks for the head alone.
  if (resolved.length === 0 && writes.length > 0) return null
  if (swapCommit && !swapCommit.equals(head.head)) throw invalidSwap(`Commit was at ${head.head}`)
  if (resolved.length === 0) return null

  const records = await recordsAfter(ctx, tx, did, head, resolved, maxRecords)
  const rev = nextRev(ctx, head.rev)
  const nodes = new StoredNodes(tx, head.id, new FreshNodes(head.fresh))
  const built = await buildOnStored(nodes, recentNodes(ctx), { did, rev, prevData: head.data, writes: resolved, key })
  if (!built.ok) throw commitRefusal(built)

  const now = ctx.clock.now()
  // A commit costs the pages that it changes on SQLite, and the bytes that it writes on PostgreSQL.
  const countsPages = ctx.db.cluster === null
  const change = { rev, created: built.nodes, removed: built.removedNodes }
  const fresh = await changeNodes(tx, nodes, change, { countsPages })
  const stored = resolved.filter((write) => write.action !== 'delete')
  const unlisted = head.unlisted + stored.length
  const areListed = !countsPages || unlisted > MAX_UNLISTED
  if (areListed && head.unlisted > 0) await listRecordsLeftOut(tx, head.id)
  const references = stored.flatMap(({ path, record }) =>
    record.blobs.map(({ ref, mimeType, size }) => ({
      record: path,
      cid: ref.toString(),
      mimeType,
      size,
      validated: record.isValidated,
    })),
  )
  const setsAside = setsLargeAside(ctx.db)
  const pathsOf = (writes: readonly ResolvedWrite[]) => writes.map(({ path }) => path)
  const replaced = pathsOf(resolved.filter(({ action }) => action !== 'create'))
  const newRecords = stored.map(({ path, record }) => ({
    path,
    cid: record.cid,
    subject: record.subject,
    value: record.bytes,
  }))
  // If a large value replaces another one, overwrite it instead of deleting it first: that changes fewer pages.
  const large = new Set(setsAside ? largeAmong(newRecords).map(({ path }) => path) : [])
  await together(
    deleteRecords(tx, head.id, pathsOf(resolved.filter(({ action }) => action === 'delete'))),
    deleteLargeRecords(tx, head.id, head.hasLarge === 0 ? [] : replaced.filter((path) => !large.has(path))),
    putRecords(tx, head.id, rev, now, newRecords, { areListed, setsAside }),
    updateTree(tx, head, { rev, head: built.commit.cid, data: built.data, commitBlock: built.commit.bytes }, fresh, {
      records,
      nodes: head.nodes === null ? null : head.nodes + built.nodes.length - built.removedNodes.length,
      unlisted: areListed ? 0 : unlisted,
      hasLarge: head.hasLarge === 1 || large.size > 0 ? 1 : 0,
    }),
    applyBlobChanges(tx, {
      did,
      rev,
      now,
      replaced,
      added: references,
    }),
    sequenceEvents(ctx, tx, [commitEvent(did, head.rev, rev, built)]),
  )
  const [first] = stored
  if (countsPages && stored.length === 1 && isNewest(first!.path, head.rev))
    await makeRoom(tx, head.id, rev, { path: first!.path, value: first!.record.bytes }, unlisted)
  const paidBytes = built.car.length + blobReferences.bytes(references, did)
  return { cid: built.commit.cid, rev, ops: built.ops, paidBytes }
}

/** Whether the record key is a TID later than revision `since`, as the keys of most new records are. */
const isNewest = (path: string, since: Tid | null): boolean => {
  const rkey = path.slice(path.indexOf('/') + 1)
  return rkey.length === since?.length && rkey > since
}

/** A write whose effect is known: `put` has become `create` or `update`. */
type ResolvedWrite = RecordWrite & ({ action: 'create' | 'update'; record: PreparedRecord } | { action: 'delete' })

/**
 * Most records about the same subject that one write replaces. An imported repository may have any number of them, but
 * a commit has room for 200 operations. The next write about the subject replaces more of them.
 */
const MAX_REPLACED = 100

/** Resolves each write against the stored records. Leaves out writes that change nothing. */
async function resolveWrites(tx: Tx, repoId: number, writes: readonly Write[]): Promise<ResolvedWrite[]> {
  const resolved: ResolvedWrite[] = []
  for (const write of writes) {
    const { swapRecord } = write
    const path = `${write.collection}/${write.rkey}`
    if (write.action === 'delete') {
      if (write.lenient && (await findRecordCid(tx, repoId, path)) === null) continue
      resolved.push({ action: 'delete', path, swapRecord })
    } else if (write.action === 'put') {
      const current = await findRecordCid(tx, repoId, path)
      if (write.record.cid.equals(current)) continue
      resolved.push({ action: current === null ? 'create' : 'update', path, swapRecord, record: write.record })
    } else {
      const { record } = write
      if (write.action === 'create' && write.replacesSame && record.subject !== null) {
        const paths = await findPathsAbout(tx, repoId, {
          collection: write.collection,
          subject: record.subject,
          limit: MAX_REPLACED,
        })
        resolved.push(
          ...paths.filter((other) => other !== path).map((other) => ({ action: 'delete' as const, path: other })),
        )
      }
      resolved.push({ action: write.action, path, swapRecord, record })
    }
  }
  return resolved
}

/**
 * Returns the number of records after the writes; null if nothing needs it. Refuses with `PayloadTooLarge` if the
 * writes add records beyond the quota (0: no quota). Writes that add none are always allowed.
 *
 * Commits keep the number in the row that they write anyway. Repositories from earlier versions lack it, so their
 * records are counted once: at the first commit that adds records under a quota, or when the totals are first asked
 * for.
 */
async function recordsAfter(
  ctx: Context,
  tx: Tx,
  did: Did,
  head: StoredTree,
  writes: readonly ResolvedWrite[],
  maxRecords: number,
): Promise<number | null> {
  let added = 0
  for (const { action } of writes) added += { create: 1, update: 0, delete: -1 }[action]
  if (head.records === null && (maxRecords === 0 || added <= 0)) return null
  const before = head.records ?? (await countRecords(tx, head.id))
  const after = before + added
  if (maxRecords === 0) return after
  if (added > 0) refuseRecords(after, maxRecords)
  await warnOfQuota(ctx, tx, did, { what: 'records', before, after, quota: maxRecords })
  return after
}

const commitEvent = (
  did: Did,
  since: Tid | null,
  rev: Tid,
  { commit, car, ops, prevData }: BuiltCommit,
): RepoEvent => ({
  type: 'commit',
  did,
  commit: commit.cid,
  rev,
  since,
  blocks: car,
  ops,
  prevData,
})

/** The `#sync` event: states the current head without the operations that led to it. */
export const syncEvent = (did: Did, rev: Tid, commit: Block): RepoEvent => ({
  type: 'sync',
  did,
  rev,
  blocks: carOf(commit.cid, [commit]),
})

/**
 * The commit had more bytes than relays accept. Building it took as long as building the largest commit they accept.
 */
export class EventTooLarge extends Refusal {
  constructor(limit: number) {
    super(400, 'InvalidRequest', `Too many writes. Max event size: ${limit / 1_000_000}MB`)
  }
}

const invalidSwap = (message: string) => new Refusal(400, 'InvalidSwap', message)

function present<Row>(did: Did, row: Row | null): Row {
  if (row === null) throw new Refusal(400, 'RepoNotFound', `Could not find repo for DID: ${did}`)
  return row
}

function commitRefusal(fault: CommitFault): Refusal {
  switch (fault.error) {
    case 'InvalidSwap':
      return invalidSwap(`Record was at ${fault.current}`)
    case 'RecordExists':
      return new Refusal(400, 'InvalidRequest', `Record already exists: ${fault.path}`)
    case 'RecordNotFound':
      return new Refusal(400, 'RecordNotFound', `Could not locate record: ${fault.path}`)
    case 'DuplicatePath':
      return new Refusal(400, 'InvalidRequest', `More than one write of a record: ${fault.path}`)
    case 'TooManyWrites':
      return new Refusal(400, 'InvalidRequest', `Too many writes. Max: ${fault.limit}`)
    case 'EventTooLarge':
      return new EventTooLarge(fault.limit)
  }
}

/** Clock identifier of TIDs, which tells apart the record keys and revisions of nodes that write at the same time. */
const clockIdOf = perContext(({ db }) => db.cluster?.clockId ?? Math.floor(Math.random() * CLOCK_IDS))

/** A TID of the present time, later than `previous`. */
export const nextRev = (ctx: Context, previous: Tid | null): Tid =>
  nextTid(previous, ctx.clock.now() * 1000, clockIdOf(ctx))

const lastKeys = perContext((): { last: Tid | null } => ({ last: null }))

/** A record key (TID) of the present time, later than any that this process has generated before. */
export function nextRecordKey(ctx: Context): Tid {
  const keys = lastKeys(ctx)
  return (keys.last = nextRev(ctx, keys.last))
}

/** Create an empty repository. Returns its `#commit` and `#sync` events, which the caller must sequence. */
export async function createRepo(ctx: Context, tx: Tx, did: Did, key: SigningKey): Promise<RepoEvent[]> {
  const rev = nextRev(ctx, null)
  const built = buildCommit({ did, rev, prevData: null, writes: [], key, read: () => null })
  if (!built.ok) throw commitRefusal(built)
  const { commit, data, nodes } = built
  const fresh = FreshNodes.none.after({ rev, created: nodes, removed: [] })
  await insertRepo(tx, did, { rev, head: commit.cid, data, commitBlock: commit.bytes }, fresh.packed, nodes.length)
  return [commitEvent(did, null, rev, built), syncEvent(did, rev, commit)]
}

/**
 * Sign the present tree again, with `key` and a new revision. Returns the `#sync` event, which the caller must
 * sequence.
 */
export async function resignHead(ctx: Context, tx: Tx, did: Did, key: SigningKey): Promise<RepoEvent> {
  const before = present(did, await repoHead(tx, did))
  const { data } = before
  const rev = nextRev(ctx, before.rev)
  const commit = signCommit(unsignedCommit(did, rev, data), key)
  await updateHead(tx, before, { rev, head: commit.cid, data, commitBlock: commit.bytes })
  return syncEvent(did, rev, commit)
}
