/** The check of repositories in spaces: what rows, set hash, numbers and references to blobs say of each other. */
import { inPieces, type Reader } from '../../../platform/database/database.ts'
import type { Throttle } from '../../../base/pace.ts'
import { decode } from '../../../protocol/cbor.ts'
import { equalBytes, isBlockOf } from '../../../protocol/cid.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { addToSet, emptySetState, setElement } from '../../../protocol/space-hash.ts'
import { spaceBlobs } from '../blobs/blobs.ts'
import {
  findSpaceRepo,
  listSpaceOps,
  listSpacesOf,
  listWholeRecords,
  spaceEntriesAt,
  type SpaceOp,
  type SpaceRecord,
  type SpaceRepo,
} from './space-store.ts'

const PAGE_SPACES = 100
/** Adding a record to the set hash takes 50 µs. */
const PAGE_RECORDS = 50
const PAGE_OPS = 200
/** Most faults of an account that are told. */
const MAX_FAULTS = 20

/**
 * Returns what is wrong with the repositories of an account in spaces, in words that name no space: operators are
 * mailed them. `reader` must be of a snapshot; `throttled` runs the pieces. Begins after the space `after`, and returns
 * the one to continue after if `isDue` before the end.
 */
export async function spaceFaults(
  reader: Reader,
  did: Did,
  { throttled, after, isDue }: { throttled: Throttle; after: string; isDue: () => boolean },
): Promise<{ faults: string[]; next: string | null }> {
  const faults: string[] = []
  for (let place = after; ;) {
    const spaces = await throttled(() => listSpacesOf(reader, did, { after: place, limit: PAGE_SPACES }))
    for (const space of spaces) {
      const repo = (await findSpaceRepo(reader, did, space))!
      for await (const fault of faultsOf(reader, did, repo, throttled)) {
        faults.push(`repository ${repo.id} in a space: ${fault}`)
        if (faults.length === MAX_FAULTS) return { faults, next: null }
      }
      if (isDue()) return { faults, next: space }
    }
    if (spaces.length < PAGE_SPACES) break
    place = spaces.at(-1)!
  }
  const lost = await throttled(() => spaceBlobs.countReferencesOutside(reader, did))
  if (lost > 0) faults.push(`${lost} blob references are of records in spaces that there are not`)
  return { faults, next: null }
}

async function* faultsOf(
  reader: Reader,
  did: Did,
  { id, space, rev, state, records }: SpaceRepo,
  throttled: Throttle,
): AsyncGenerator<string> {
  const found = emptySetState()
  let count = 0
  let references = 0
  for (let after = ''; ;) {
    const page = await throttled(async () => {
      const some = await listWholeRecords(reader, id, after, PAGE_RECORDS)
      for (const { path, cid } of some) addToSet(found, setElement(path, cid))
      return some
    })
    const compared = await referenceFaults(reader, did, space, page)
    for (const fault of [...page.flatMap(blockFault), ...compared.faults]) yield fault
    if (page.some((record) => record.rev > rev)) yield 'a record is of a later revision than its repository'
    references += compared.stored
    count += page.length
    if (page.length < PAGE_RECORDS) break
    after = page.at(-1)!.path
  }
  if (count !== records) yield `it has ${count} records, and its row says ${records}`
  if (!equalBytes(found, state)) yield 'the set hash is not that of its records'
  const stored = await throttled(() => spaceBlobs.countReferences(reader, did, space))
  if (stored !== references) yield `${stored} blob references are stored, and its records have ${references}`
  yield* changeFaults(reader, id, rev, throttled)
}

/** The latest changes must lead to the records that there are, without a gap within a revision. */
async function* changeFaults(reader: Reader, id: number, rev: Tid, throttled: Throttle): AsyncGenerator<string> {
  /** What each path has after the changes that were read, and the page's newest changes of them. */
  const last = new Map<string, string | null>()
  let before: Pick<SpaceOp, 'rev' | 'idx'> = { rev: '' as Tid, idx: -1 }
  for (;;) {
    const page = await throttled(() => listSpaceOps(reader, id, before, PAGE_OPS))
    for (const op of page) {
      // The oldest changes are deleted some at a time, so the first revision may lack its beginning.
      const isFirst = before.idx < 0
      if (!isFirst && op.idx !== (op.rev === before.rev ? before.idx + 1 : 0))
        yield `a change of revision ${op.rev} is missing`
      const known = last.get(op.path)
      if (known !== undefined && known !== (op.prev?.toString() ?? null))
        yield `a change of revision ${op.rev} does not follow the one before it`
      last.set(op.path, op.cid?.toString() ?? null)
      before = op
    }
    if (page.length < PAGE_OPS) break
  }
  if (before.rev > rev) yield 'a change is of a later revision than its repository'
  for (const piece of inPieces([...last])) {
    const stored = await throttled(() =>
      spaceEntriesAt(
        reader,
        id,
        piece.map(([path]) => path),
      ),
    )
    if (piece.some(([path, cid]) => (stored.get(path)?.cid.toString() ?? null) !== cid))
      yield 'a record is not what the last change made it'
  }
}

const blockFault = ({ cid, value }: SpaceRecord): string[] =>
  isBlockOf(cid.bytes, value) ? [] : ['the block of a record has another CID']

async function referenceFaults(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  page: readonly SpaceRecord[],
): Promise<{ faults: string[]; stored: number }> {
  const paths = page.map(({ path }) => path)
  const rows = await spaceBlobs.referencesOf(reader, did, space, paths)
  const stored = Map.groupBy(rows, ({ record }) => record)
  const faults = page.flatMap(({ path, value }) => {
    const has = new Set(cidsIn(value))
    const named = new Set(stored.get(path)?.map(({ cid }) => cid))
    return has.symmetricDifference(named).size === 0
      ? []
      : ['the blob references of a record are not those that it has']
  })
  return { faults, stored: rows.length }
}

/** A block that cannot be read is a fault already. */
function cidsIn(value: Uint8Array): readonly string[] {
  try {
    return blobCids(decode(value))
  } catch (error) {
    if (error instanceof Malformed) return []
    throw error
  }
}
