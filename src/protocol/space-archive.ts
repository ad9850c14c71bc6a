/**
 * The archive of a permissioned repository, as `com.atproto.space.getRepo` sends it. Its format is announced to change:
 * all that is particular to it is in `spaceArchive`.
 *
 * Source: atproto proposal 0016, "Repository export"; IPLD "CARv1" and "DAG-CBOR" (order of map keys).
 */
import { writeCar, type Block } from './car.ts'
import { encode, sortKeys, type DataObject } from './cbor.ts'
import { cidOfCbor, type Cid } from './cid.ts'
import type { SpaceCommit } from './space-commit.ts'

/** Records by their paths, `collection/rkey`. */
export type SpaceIndex = Readonly<Record<string, Cid>>

/** Returns blocks of the records with these paths, in this order, in pages of any size. */
export type RecordBlocks = (paths: readonly string[]) => AsyncIterable<readonly Block[]> | Iterable<readonly Block[]>

/**
 * An archive as a stream of chunks: the commit and an index of all records, which are its roots, then the records in
 * the order of the index. Shorter paths come first, so that order is not the one of a list of records. If two paths
 * have the same record, its block is there twice. Without `records`, the archive ends after its roots.
 *
 * The index is encoded as a whole, because a root names it: 50 bytes for a record, and its path.
 */
export function spaceArchive(
  commit: SpaceCommit,
  index: SpaceIndex,
  records: RecordBlocks | null,
): AsyncGenerator<Uint8Array> {
  const roots = [commit, index].map((value) => {
    const bytes = encode(value as unknown as DataObject)
    return { cid: cidOfCbor(bytes), bytes }
  })
  async function* pages() {
    yield roots
    if (records !== null) yield* records(sortKeys(Object.keys(index)))
  }
  return writeCar(
    roots.map(({ cid }) => cid),
    pages(),
  )
}
