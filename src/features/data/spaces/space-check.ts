/** The check of repositories in spaces: what rows, set hash, numbers and references to blobs say of each other. */
import type { Reader } from '../../../platform/database/database.ts'
import type { Throttle } from '../../../base/pace.ts'
import { decode } from '../../../protocol/cbor.ts'
import { equalBytes, isBlockOf } from '../../../protocol/cid.ts'
import { blobCids } from '../../../protocol/data-model.ts'
import type { Did, SpaceUri } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { addToSet, emptySetState, setElement } from '../../../protocol/space-hash.ts'
import { spaceBlobs } from '../blobs/blobs.ts'
import { findSpaceRepo, listSpacesOf, listWholeRecords, type SpaceRecord, type SpaceRepo } from './space-store.ts'

const PAGE_SPACES = 100
/** Adding a record to the set hash takes 50 µs. */
const PAGE_RECORDS = 50
/** Most faults of an account that are told. */
const MAX_FAULTS = 20

/**
 * Returns what is wrong with the repositories of an account in spaces, in words that name no space: operators are
 * mailed them. `reader` must be of a snapshot; `throttled` runs the pieces.
 */
export async function spaceFaults(reader: Reader, did: Did, throttled: Throttle): Promise<string[]> {
  const faults: string[] = []
  for (let after = ''; ;) {
    const spaces = await throttled(() => listSpacesOf(reader, did, { after, limit: PAGE_SPACES }))
    for (const space of spaces) {
      const repo = (await findSpaceRepo(reader, did, space))!
      for await (const fault of faultsOf(reader, did, repo, throttled)) {
        faults.push(`repository ${repo.id} in a space: ${fault}`)
        if (faults.length === MAX_FAULTS) return faults
      }
    }
    if (spaces.length < PAGE_SPACES) return faults
    after = spaces.at(-1)!
  }
}

async function* faultsOf(
  reader: Reader,
  did: Did,
  { id, space, state, records }: SpaceRepo,
  throttled: Throttle,
): AsyncGenerator<string> {
  const found = emptySetState()
  let count = 0
  for (let after = ''; ;) {
    const page = await throttled(async () => {
      const some = await listWholeRecords(reader, id, after, PAGE_RECORDS)
      for (const { path, cid } of some) addToSet(found, setElement(path, cid))
      return some
    })
    for (const fault of [...page.flatMap(blockFault), ...(await referenceFaults(reader, did, space, page))]) yield fault
    count += page.length
    if (page.length < PAGE_RECORDS) break
    after = page.at(-1)!.path
  }
  if (count !== records) yield `it has ${count} records, and its row says ${records}`
  if (!equalBytes(found, state)) yield 'the set hash is not that of its records'
}

const blockFault = ({ cid, value }: SpaceRecord): string[] =>
  isBlockOf(cid.bytes, value) ? [] : ['the block of a record has another CID']

async function referenceFaults(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  page: readonly SpaceRecord[],
): Promise<string[]> {
  const paths = page.map(({ path }) => path)
  const stored = Map.groupBy(await spaceBlobs.referencesOf(reader, did, space, paths), ({ record }) => record)
  return page.flatMap(({ path, value }) => {
    const has = new Set(cidsIn(value))
    const named = new Set(stored.get(path)?.map(({ cid }) => cid))
    return has.symmetricDifference(named).size === 0
      ? []
      : ['the blob references of a record are not those that it has']
  })
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
