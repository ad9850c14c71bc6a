/**
 * The archive of a permissioned repository, as `com.atproto.space.getRepo` sends it. Its format is announced to change:
 * all that is particular to it is in `spaceArchive`.
 *
 * Source: atproto proposal 0016, "Repository export"; IPLD "CARv1" and "DAG-CBOR" (order of map keys).
 */
import { writeCar, type Block } from './car.ts'
import { encode, encodeSequence, mapHead, type DataObject } from './cbor.ts'
import { cidOfCbor, cidOfCborDigest, type Cid } from './cid.ts'
import type { SpaceCommit } from './space-commit.ts'

/** Entries that are encoded at once, in about a millisecond. */
const PAGE_ENTRIES = 1000

/**
 * The index of an archive: the CIDs of all records by their paths, `collection/rkey`, which are ASCII. Shorter paths
 * come first, so that order is not the one of a list of records.
 */
export class SpaceIndex {
  /** By the length of the paths. */
  readonly #entries = new Map<number, (readonly [path: string, cid: Cid])[]>()
  #size = 0

  /** Add a record. Of paths of one length, those that are added first come first, so add them in order. */
  add(path: string, cid: Cid): void {
    const known = this.#entries.get(path.length)
    if (known === undefined) this.#entries.set(path.length, [[path, cid]])
    else known.push([path, cid])
    this.#size++
  }

  /** The paths in their order, in pages. */
  *pages(): Generator<string[]> {
    for (const page of this.#inOrder()) yield page.map(([path]) => path)
  }

  *#inOrder(): Generator<(readonly [string, Cid])[]> {
    for (const length of [...this.#entries.keys()].toSorted((a, b) => a - b)) {
      const entries = this.#entries.get(length)!
      for (let start = 0; start < entries.length; start += PAGE_ENTRIES)
        yield entries.slice(start, start + PAGE_ENTRIES)
    }
  }

  /** The index as a block. Calls `pause` after each piece of it. */
  async block(pause: () => Promise<unknown>): Promise<Block> {
    const hasher = new Bun.CryptoHasher('sha256')
    const pieces: Uint8Array[] = []
    const add = (piece: Uint8Array) => {
      hasher.update(piece)
      pieces.push(piece)
    }
    add(mapHead(this.#size))
    for (const page of this.#inOrder()) {
      add(encodeSequence(page.flat()))
      await pause()
    }
    return { cid: cidOfCborDigest(hasher.digest()), bytes: Buffer.concat(pieces) }
  }
}

/** Returns blocks of the records with these paths, in this order, in pages of any size. */
export type RecordBlocks = (paths: readonly string[]) => AsyncIterable<readonly Block[]> | Iterable<readonly Block[]>

/**
 * An archive as a stream of chunks: the commit and an index of all records, which are its roots, then the records in
 * the order of the index. If two paths have the same record, its block is there twice. Without `records`, the archive
 * ends after its roots.
 *
 * The index is in memory as a whole, because a root names it: 50 bytes for a record, and its path.
 */
export async function* spaceArchive(
  commit: SpaceCommit,
  index: SpaceIndex,
  records: RecordBlocks | null,
  pause: () => Promise<unknown>,
): AsyncGenerator<Uint8Array> {
  const first = encode({ ...commit } as unknown as DataObject)
  const roots = [{ cid: cidOfCbor(first), bytes: first }, await index.block(pause)]
  async function* pages() {
    yield roots
    if (records !== null) for (const paths of index.pages()) yield* records(paths)
  }
  yield* writeCar(
    roots.map(({ cid }) => cid),
    pages(),
  )
}
