/**
 * The archive of a permissioned repository, as `com.atproto.space.getRepo` sends it. A change of the format has been
 * announced: everything that depends on it is in `spaceArchive`.
 *
 * Source: atproto proposal 0016, "Repository export"; IPLD "CARv1" and "DAG-CBOR" (order of map keys).
 */
import { sectionHead, writeCar, type Block } from './car.ts'
import { encode, encodeSequence, mapHead, type DataObject } from './cbor.ts'
import { cidOfCbor, cidOfCborDigest, type Cid } from './cid.ts'
import type { SpaceCommit } from './space-commit.ts'

/** Entries that are encoded together, in about a millisecond. */
const PAGE_ENTRIES = 1000

/**
 * The index of an archive: the CIDs of all records by their paths, `collection/rkey`, which are ASCII. Shorter paths
 * come first, so the order differs from that of a list of records.
 */
export class SpaceIndex {
  /** By the length of the paths. */
  readonly #entries = new Map<number, (readonly [path: string, cid: Cid])[]>()
  #size = 0

  /** Add a record. Add paths of the same length in order, because the index keeps the order in which they are added. */
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

  /** The index as a block, in pieces, because it takes 90 MB for 100,000 records with long paths. */
  *pieces(): Generator<Uint8Array> {
    yield mapHead(this.#size)
    for (const page of this.#inOrder()) yield encodeSequence(page.flat())
  }

  /** The CID and the length of that block. Calls `pause` after each piece of it. */
  async named(pause: () => Promise<unknown>): Promise<{ cid: Cid; bytes: number }> {
    const hasher = new Bun.CryptoHasher('sha256')
    let bytes = 0
    for (const piece of this.pieces()) {
      hasher.update(piece)
      bytes += piece.length
      await pause()
    }
    return { cid: cidOfCborDigest(hasher.digest()), bytes }
  }
}

/** Returns blocks of the records with these paths, in this order, in pages of any size. */
export type RecordBlocks = (paths: readonly string[]) => AsyncIterable<readonly Block[]> | Iterable<readonly Block[]>

/**
 * An archive as a stream of chunks: the commit and an index of all records, which are its roots, then the records in
 * the order of the index. If two paths have the same record, its block is there twice. Without `records`, the archive
 * ends after its roots.
 *
 * The entries of the index are in memory, because a root names it. They are encoded twice, for its CID and to be sent.
 */
export async function* spaceArchive(
  commit: SpaceCommit,
  index: SpaceIndex,
  records: RecordBlocks | null,
  pause: () => Promise<unknown>,
): AsyncGenerator<Uint8Array> {
  const first = encode({ ...commit } as unknown as DataObject)
  const signed = { cid: cidOfCbor(first), bytes: first }
  const named = await index.named(pause)
  async function* pages(): AsyncGenerator<Uint8Array | readonly Block[]> {
    yield [signed]
    yield sectionHead(named.cid, named.bytes)
    for (const piece of index.pieces()) {
      yield piece
      await pause()
    }
    if (records !== null) for (const paths of index.pages()) yield* records(paths)
  }
  yield* writeCar([signed.cid, named.cid], pages())
}
