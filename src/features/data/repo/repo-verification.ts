/** Checks a stored repository for consistency: signature, tree, records, and no leftover rows. */
import { unthrottled, type Throttle } from '../../../base/pace.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { decode, type DataObject } from '../../../protocol/cbor.ts'
import { cidOfCbor, type Cid } from '../../../protocol/cid.ts'
import { parseCommit, verifyCommit } from '../../../protocol/commit.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import type { PublicKey } from '../../../protocol/keys.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { walkTree } from '../../../protocol/mst.ts'
import { findStrayValues } from './large-records.ts'
import { hasSubjects, subjectOf } from './record-preparation.ts'
import { findRecordsAt, LAST_PATH, listRecordHeads, type RecordHead } from './record-store.ts'
import { StoredNodes } from './node-store.ts'
import { findCounts, lacksNoteOfLarge, type RepoHead } from './repo-store.ts'

/** How far the check of a repository has come. */
export interface CheckedUpTo {
  /** The revision at which the check began. The counts are compared only if the repository still has it at the end. */
  rev: Tid
  /** Records up to this path were compared with the tree. */
  path: string
  nodes: number
  records: number
}

/** Bytes of records that are read at once; the last record may exceed them. */
const PIECE_BYTES = 512 * 1024
/** Rows of records that are read at once, without their values. */
const PIECE_ROWS = 250

/**
 * Returns what is wrong with the repository, in words; empty if nothing is. `reader` must be of a snapshot. `throttled`
 * runs each piece of the work.
 *
 * If `isDue` returns true before the end and nothing was wrong so far, also returns the place where the next call
 * continues, in this state or a later one. Either way, each record is compared with the tree of the same state.
 */
export async function repoFaults(
  reader: Reader,
  repo: RepoHead,
  key: PublicKey,
  {
    throttled = unthrottled,
    from = { rev: repo.rev, path: '', nodes: 0, records: 0 },
    isDue = () => false,
  }: { throttled?: Throttle; from?: CheckedUpTo; isDue?: () => boolean } = {},
): Promise<{ faults: string[]; next: CheckedUpTo | null }> {
  const faults = commitFaults(repo, key)
  const stored = new StoredNodes(reader, repo.id)
  const readNode = async (cid: Cid): Promise<Uint8Array | null> => {
    const [node] = await stored.find([cid])
    if (node !== undefined && !cidOfCbor(node.bytes).equals(cid)) faults.push(`node ${cid} does not match its CID`)
    return node?.bytes ?? null
  }
  let { path, nodes, records } = from
  const compare = async (upTo: string, entries: readonly [path: string, cid: Cid][]) =>
    faults.push(...(await rangeFaults(reader, repo, { after: path, upTo, entries, throttled })))
  try {
    for await (const page of walkTree(repo.data, (cid) => throttled(() => readNode(cid)), path)) {
      nodes += page.nodes.length
      records += page.entries.length
      const last = page.entries.at(-1)
      if (last === undefined) continue
      await compare(last[0], page.entries)
      path = last[0]
      if (faults.length === 0 && isDue()) return { faults, next: { rev: from.rev, path, nodes, records } }
    }
  } catch (error) {
    // Packed nodes that were cut off cause a read beyond their last byte.
    if (!(error instanceof Malformed || error instanceof RangeError)) throw error
    const place = path === '' ? 'the tree' : `the tree after ${path}`
    return { faults: [...faults, `${place} cannot be read (${error.message})`], next: null }
  }
  await compare(LAST_PATH, [])
  // If a commit has come in between, the counts have changed.
  if (from.rev === repo.rev) faults.push(...(await countFaults(reader, repo, stored, { nodes, records }, throttled)))
  return { faults, next: null }
}

async function countFaults(
  reader: Reader,
  repo: RepoHead,
  stored: StoredNodes,
  { nodes, records }: { nodes: number; records: number },
  throttled: Throttle,
): Promise<string[]> {
  const faults: string[] = []
  const kept = await findCounts(reader, repo.id)
  const storedNodes = await stored.countFramed(throttled)
  if (storedNodes.count !== nodes) faults.push(`${storedNodes.count} nodes are stored, but ${nodes} are in the tree`)
  if (storedNodes.misframed > 0) faults.push(`${storedNodes.misframed} nodes would be unreadable in an archive`)
  if (await lacksNoteOfLarge(reader, repo.id))
    faults.push('large records are stored, but the row says that there are none')
  if (storedNodes.newestRev > repo.rev)
    faults.push(`a node has revision ${storedNodes.newestRev}, the repository ${repo.rev}`)
  if ((kept.records ?? records) !== records)
    faults.push(`${kept.records} records are counted, but ${records} are in the tree`)
  if ((kept.nodes ?? nodes) !== nodes) faults.push(`${kept.nodes} nodes are counted, but ${nodes} are in the tree`)
  return faults
}

function commitFaults({ did, rev, head, data, commitBlock }: RepoHead, key: PublicKey): string[] {
  try {
    const commit = parseCommit(commitBlock)
    const faults: [boolean, string][] = [
      [cidOfCbor(commitBlock).equals(head), 'the commit does not match its CID'],
      [commit.did === did, `the commit belongs to ${commit.did}`],
      [commit.rev === rev, `the commit has revision ${commit.rev}, the row ${rev}`],
      [commit.data.equals(data), 'the commit names another tree than the row'],
      [verifyCommit(commit, key), 'the signature is not from the key of the account'],
    ]
    return faults.filter(([isRight]) => !isRight).map(([, fault]) => fault)
  } catch (error) {
    if (error instanceof Malformed) return [`the commit cannot be read (${error.message})`]
    throw error
  }
}

interface Range {
  after: string
  upTo: string
  /** All entries of the tree in this range. */
  entries: readonly [path: string, cid: Cid][]
  throttled: Throttle
}

/**
 * Compares the stored records after `after`, up to and including `upTo`, with the entries of the tree in that range.
 */
async function rangeFaults(
  reader: Reader,
  { id, rev }: RepoHead,
  { after, upTo, entries, throttled }: Range,
): Promise<string[]> {
  const faults: string[] = []
  const wanted = new Map(entries)
  for (let place = after; ;) {
    const rows = await throttled(() => listRecordHeads(reader, id, { after: place, upTo, limit: PIECE_ROWS }))
    const sound: RecordHead[] = []
    for (const row of rows) {
      const cid = wanted.get(row.path)
      wanted.delete(row.path)
      if (cid === undefined) faults.push(`record ${row.path} is stored, but not in the tree`)
      else if (!row.cid.equals(cid)) faults.push(`record ${row.path} is ${row.cid}, but ${cid} in the tree`)
      else sound.push(row)
      if (row.isMisframed) faults.push(`record ${row.path} would be unreadable in an archive`)
      if (row.rev > rev) faults.push(`record ${row.path} has revision ${row.rev}, the repository ${rev}`)
    }
    for (const piece of piecesOf(sound)) faults.push(...(await throttled(() => valueFaults(reader, id, piece))))
    if (rows.length < PIECE_ROWS) break
    place = rows.at(-1)!.path
  }
  for (const path of await throttled(() => findStrayValues(reader, id, { after, upTo })))
    faults.push(`a large value is stored at ${path}, but no record there refers to it`)
  return [...faults, ...Array.from(wanted.keys(), (path) => `record ${path} is missing`)]
}

function* piecesOf(rows: readonly RecordHead[]): Generator<RecordHead[]> {
  let [piece, bytes]: [RecordHead[], number] = [[], 0]
  for (const row of rows) {
    piece.push(row)
    bytes += row.bytes
    if (bytes < PIECE_BYTES) continue
    yield piece
    ;[piece, bytes] = [[], 0]
  }
  if (piece.length > 0) yield piece
}

async function valueFaults(reader: Reader, repoId: number, rows: readonly RecordHead[]): Promise<string[]> {
  const paths = rows.map(({ path }) => path)
  const values = new Map((await findRecordsAt(reader, repoId, paths)).map(({ path, value }) => [path, value]))
  return rows.flatMap(({ path, cid, subject }) => {
    const value = values.get(path)!
    if (!cidOfCbor(value).equals(cid)) return [`record ${path} does not match its CID`]
    const collection = path.slice(0, path.indexOf('/'))
    if (!hasSubjects(collection) || subjectOf(collection, decode(value) as DataObject) === subject) return []
    return [`record ${path} is stored as being about something else`]
  })
}
