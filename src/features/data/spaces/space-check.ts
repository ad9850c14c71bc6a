/**
 * The check of repositories in spaces: whether rows, set hash, counts, latest changes and references to blobs agree.
 */
import type { Reader } from '../../../platform/database/database.ts'
import type { Throttle } from '../../../base/pace.ts'
import { decode } from '../../../protocol/cbor.ts'
import { equalBytes, isBlockOf } from '../../../protocol/cid.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import { parseTid, type Did, type SpaceUri, type Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { parseSpaceUri } from '../../../protocol/space-address.ts'
import { addToSet, emptySetState, setElement } from '../../../protocol/space-hash.ts'
import { spaceBlobs } from '../blobs/blobs.ts'
import {
  listSpaceOps,
  listSpacePlaces,
  listWholePiece,
  type SpaceOp,
  type SpacePlace,
  type SpaceRecord,
} from './space-store.ts'

const PAGE_SPACES = 100
/** Records read at once. Adding one to the set hash takes 50 µs. */
const PAGE_RECORDS = 50
const PAGE_OPS = 200
/** Most faults of an account that are reported. */
const MAX_FAULTS = 20

/**
 * Returns what is wrong with the repositories of an account in spaces, in words that name no space, because they are
 * mailed to operators. `reader` must be of a snapshot; `throttled` runs each piece. Begins after the space `after`. If
 * `isDue` returns true before the end, returns the space to continue after.
 */
export async function spaceFaults(
  reader: Reader,
  did: Did,
  { throttled, after, isDue }: { throttled: Throttle; after: string; isDue: () => boolean },
): Promise<{ faults: string[]; next: string | null }> {
  const faults: string[] = []
  for (let last = after; ;) {
    const places = await throttled(() => listSpacePlaces(reader, did, last, PAGE_SPACES))
    for (const place of places) {
      for await (const fault of faultsOfSpace(reader, did, place, throttled)) {
        faults.push(`repository ${numberOf(place)} in a space: ${fault}`)
        if (faults.length === MAX_FAULTS) return { faults, next: null }
      }
      if (isDue()) return { faults, next: place.space }
    }
    if (places.length < PAGE_SPACES) break
    last = places.at(-1)!.space
  }
  const lost = await spaceBlobs.countReferencesOutside(reader, did, throttled)
  if (lost > 0) faults.push(`${lost} blob references belong to records in spaces that do not exist`)
  return { faults, next: null }
}

/** The number under which the records of a repository are stored. */
export const numberOf = ({ repo, placeId }: SpacePlace): number => repo?.id ?? placeId!

/** Yields what is wrong with one repository, in words. */
export async function* faultsOfSpace(
  reader: Reader,
  did: Did,
  { space, repo, placeId }: SpacePlace,
  throttled: Throttle,
): AsyncGenerator<string> {
  if (repo === null) {
    yield 'its row is lost'
    return
  }
  const { id, rev, state, records } = repo
  if (placeId !== id) yield placeId === null ? 'where it belongs is not noted' : `it is noted as repository ${placeId}`
  const address = parseSpaceUri(space)
  if (address?.authority !== repo.authority || address.type !== repo.type) yield 'its row does not fit the space'
  if (parseTid(rev) === null) yield 'its revision is none'
  const log = await changesOfSpace(reader, id, throttled)
  yield* log.faults
  if (log.newest !== null && log.newest !== rev) yield 'its revision is not that of the last change'
  const found = emptySetState()
  const seen = new Set<string>()
  let count = 0
  let references = 0
  for (let after = ''; ;) {
    const { records: page, isEnd } = await throttled(async () => {
      const piece = await listWholePiece(reader, id, after, PAGE_RECORDS)
      for (const { path, cid } of piece.records) addToSet(found, setElement(path, cid))
      return piece
    })
    const compared = await throttled(() => referenceFaults(reader, did, space, page))
    for (const fault of [...page.flatMap(blockFault), ...compared.faults]) yield fault
    for (const record of page) {
      if (record.rev > rev || parseTid(record.rev) === null)
        yield 'a record has a revision that its repository never had'
      const fault = changeFault(log, record)
      if (fault !== null) yield fault
      if (log.last.has(record.path)) seen.add(record.path)
    }
    references += compared.stored
    count += page.length
    if (isEnd) break
    after = page.at(-1)!.path
  }
  for (const [path, { cid }] of log.last)
    if (cid !== null && !seen.has(path)) yield 'a record that the last change wrote is lost'
  if (count !== records) yield `it has ${count} records, and its row says ${records}`
  if (!equalBytes(found, state)) yield 'the set hash is not that of its records'
  const stored = await spaceBlobs.countReferences(reader, did, space, throttled)
  if (stored !== references) yield `${stored} blob references are stored, and its records have ${references}`
  const missing = await spaceBlobs.countMissing(reader, did, space, throttled)
  if (missing > 0) yield `${missing} blobs to which its records refer have no row`
}

/** The latest changes of a repository. */
export interface ChangeLog {
  /** The last change of each path; `cid` is null if it deleted the record. */
  last: ReadonlyMap<string, { rev: Tid; cid: string | null }>
  /** The log has all changes of revisions after this one; null if it has no changes. */
  completeAfter: Tid | '' | null
  newest: Tid | null
  faults: readonly string[]
}

/** Reads the latest changes, and checks that each follows the one before it, without a gap. */
export async function changesOfSpace(reader: Reader, id: number, throttled: Throttle): Promise<ChangeLog> {
  const last = new Map<string, { rev: Tid; cid: string | null }>()
  const faults: string[] = []
  let first: SpaceOp | null = null
  let before: Pick<SpaceOp, 'rev' | 'idx'> = { rev: '' as Tid, idx: -1 }
  for (;;) {
    const page = await throttled(() => listSpaceOps(reader, id, before, PAGE_OPS))
    for (const op of page) {
      first ??= op
      const fault = gapBefore(op, before, last)
      if (fault !== null) faults.push(fault)
      last.set(op.path, { rev: op.rev, cid: op.cid?.toString() ?? null })
      before = op
    }
    if (page.length < PAGE_OPS) break
  }
  const completeAfter = first === null ? null : (first.prevRev ?? first.rev)
  return { last, completeAfter, newest: first === null ? null : before.rev, faults: faults.slice(0, MAX_FAULTS) }
}

/**
 * Returns what is wrong between two changes, in words; null if nothing is. Only the oldest revisions may be missing,
 * each as a whole.
 */
function gapBefore(op: SpaceOp, before: Pick<SpaceOp, 'rev' | 'idx'>, last: ChangeLog['last']): string | null {
  const isNewRev = op.rev !== before.rev
  const isFirst = before.idx < 0
  if (op.idx !== (isNewRev ? 0 : before.idx + 1)) return `a change of revision ${op.rev} is missing`
  if (!isFirst && isNewRev && op.prevRev !== null && op.prevRev !== before.rev)
    return `changes before revision ${op.rev} are missing`
  const known = last.get(op.path)
  return known !== undefined && known.cid !== (op.prev?.toString() ?? null)
    ? `a change of revision ${op.rev} does not follow the one before it`
    : null
}

/** Returns how a record differs from its latest change, in words; null if it does not. */
export function changeFault(
  { last, completeAfter }: ChangeLog,
  { path, cid, rev }: Pick<SpaceRecord, 'path' | 'cid'> & { rev: Tid },
): string | null {
  const change = last.get(path)
  if (change === undefined)
    return completeAfter === null || rev <= completeAfter ? null : 'the change that wrote a record is missing'
  return change.cid === cid.toString() && change.rev === rev ? null : 'a record is not what the last change made it'
}

const blockFault = ({ cid, value }: SpaceRecord): string[] =>
  isBlockOf(cid.bytes, value) ? [] : ['the block of a record has another CID']

async function referenceFaults(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  page: readonly (SpaceRecord & { rev: Tid })[],
): Promise<{ faults: string[]; stored: number }> {
  const paths = page.map(({ path }) => path)
  const rows = await spaceBlobs.referencesOf(reader, did, space, paths)
  const stored = Map.groupBy(rows, ({ record }) => record)
  const faults = page.flatMap(({ path, value, rev }) => {
    const has = new Set(blobsOfRecord(value))
    const named = stored.get(path) ?? []
    const isRight = has.size === named.length && named.every((one) => has.has(one.cid) && one.rev === rev)
    return isRight ? [] : ['the blob references of a record are not those that it has']
  })
  return { faults, stored: rows.length }
}

/** The blobs that a record refers to. A block that cannot be read refers to none, and is reported as a fault anyway. */
export function blobsOfRecord(value: Uint8Array): readonly string[] {
  try {
    return blobCids(decode(value))
  } catch (error) {
    if (error instanceof Malformed) return []
    throw error
  }
}

/** Whether the stored references of an account to blobs are those in its records in spaces. */
export async function areReferencesRight(reader: Reader, did: Did, throttled: Throttle): Promise<boolean> {
  for (let last = ''; ;) {
    const places = await throttled(() => listSpacePlaces(reader, did, last, PAGE_SPACES))
    for (const { space, repo } of places) {
      if (repo === null) return false
      for (let after = ''; ;) {
        const { records: page, isEnd } = await throttled(() => listWholePiece(reader, repo.id, after, PAGE_RECORDS))
        const { faults } = await throttled(() => referenceFaults(reader, did, space, page))
        if (faults.length > 0) return false
        if (isEnd) break
        after = page.at(-1)!.path
      }
    }
    if (places.length < PAGE_SPACES) return true
    last = places.at(-1)!.space
  }
}
