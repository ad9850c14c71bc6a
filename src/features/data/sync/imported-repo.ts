/**
 * An untrusted archive, or the blocks in a folder of another server, read and checked before any of it is used.
 *
 * Blocks of an archive are written to an unnamed file as they arrive. Then the tree is walked from the commit, so only
 * blocks that the commit vouches for are imported, whatever else the archive holds. Memory use does not depend on its
 * size.
 */
import { setImmediate } from 'node:timers/promises'
import { forbidden, invalidRequest } from '../../../http/errors.ts'
import { BlockFile } from '../../../platform/files/block-file.ts'
import { readSections, type Block } from '../../../protocol/car.ts'
import { decode, type DataObject } from '../../../protocol/cbor.ts'
import { codecs, type Cid } from '../../../protocol/cid.ts'
import { parseCommit, type Commit } from '../../../protocol/commit.ts'
import { blobCids, excessOf } from '../../../protocol/data-model.ts'
import { parseNsid, parseRecordKey, type Did } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { walkTree } from '../../../protocol/mst.ts'
import { subjectOf, type NewRecord } from '../repo/repo.ts'

/** Most blocks in one archive. */
const MAX_BLOCKS = 4_000_000
/** The largest record: somewhat more than a write may send. Decoding it takes up to 40 ms. */
const MAX_RECORD_BYTES = 1024 ** 2
/**
 * Most bytes that an archive may add by repetition: it contains a record once, but its tree may name it at many paths,
 * each of which is stored.
 */
const MAX_REPEATED_BYTES = 64 * 1024 ** 2
/** Records in one page, and their total bytes, which the last record of a page may exceed. */
const PAGE_RECORDS = 4000
const PAGE_BYTES = 2 * 1024 * 1024
/** Bytes of records that are decoded in one turn of the event loop. */
const TURN_BYTES = 512 * 1024
/**
 * Force a full garbage collection after this many pages of records. Objects in use while a page is stored survive the
 * engine's small collections, and the heap would grow to several times their size before a full one. It is not done
 * more often because it stops the server for tens of milliseconds.
 */
const PAGES_PER_COLLECTION = 16
/** Bytes of nodes collected before they are passed on, sorted by CID. */
const GATHERED_BYTES = 4 * 1024 * 1024

export interface ImportedRecord extends NewRecord {
  /** CIDs of the blobs that the record refers to. */
  blobs: readonly string[]
}

/** A source of blocks, which compares each block with its CID before it returns it. */
export interface BlockSource {
  /** Returns null if the block is missing. */
  get(cid: Cid): Uint8Array | null
  close(): void
}

/** Blocks in the order of storage: records by path, and the nodes of one page by CID. */
export interface ImportedPage {
  nodes: Block[]
  records: ImportedRecord[]
}

export class ImportedRepo {
  private constructor(
    readonly root: Cid,
    readonly commit: Commit,
    readonly blocks: BlockSource,
    readonly maxRecordBytes: number,
  ) {}

  /** Throws as `receive` does. The caller closes `blocks` then. */
  static of(did: Did, root: Cid, blocks: BlockSource): ImportedRepo {
    try {
      const bytes = blocks.get(root)
      if (bytes === null) throw invalidRequest('the root of the repository is missing')
      return new ImportedRepo(root, commitOf(did, bytes), blocks, Infinity)
    } catch (error) {
      throw refusalOf(error)
    }
  }

  /**
   * Receive an archive into a temporary file in `dir`. Refuses with `InvalidRequest` anything that is not an archive of
   * a repository, and with `Forbidden` the repository of another DID.
   */
  static async receive(did: Did, archive: AsyncIterable<Uint8Array>, dir: string): Promise<ImportedRepo> {
    const blocks = new BlockFile(dir)
    try {
      const { roots, pages } = await readSections(archive)
      const [root] = roots
      if (root === undefined || roots.length > 1) throw invalidRequest('expected one root')
      for await (const page of pages) {
        for (const section of page) blocks.add(section)
        if (blocks.count > MAX_BLOCKS) throw invalidRequest(`CAR has more than ${MAX_BLOCKS} blocks`)
      }
      const bytes = blocks.get(root)
      if (bytes === null) throw invalidRequest('CAR does not contain its root')
      return new ImportedRepo(root, commitOf(did, bytes), blocks, blocks.bytes + MAX_REPEATED_BYTES)
    } catch (error) {
      blocks.close()
      throw refusalOf(error)
    }
  }

  /**
   * Yields every node and record of the tree. Refuses with `InvalidRequest` at the first that is missing or malformed.
   */
  async *pages(): AsyncGenerator<ImportedPage> {
    let [nodes, records]: [Block[], ImportedRecord[]] = [[], []]
    let [nodeBytes, recordBytes, turnBytes, allBytes] = [0, 0, 0, 0]
    let count = 0
    try {
      for await (const page of walkTree(this.commit.data, async (cid) => this.blocks.get(cid))) {
        nodes.push(...page.nodes)
        for (const { bytes } of page.nodes) nodeBytes += bytes.length
        for (const [path, cid] of page.entries) {
          const record = this.#record(path, cid)
          records.push(record)
          recordBytes += record.value.length
          allBytes += record.value.length
          if (allBytes > this.maxRecordBytes) throw invalidRequest('CAR repeats large records too often')
          turnBytes += record.value.length
          if (turnBytes >= TURN_BYTES) {
            turnBytes = 0
            await setImmediate()
          }
          if (records.length < PAGE_RECORDS && recordBytes < PAGE_BYTES) continue
          yield { nodes: [], records }
          ;[records, recordBytes] = [[], 0]
          if (++count % PAGES_PER_COLLECTION === 0) Bun.gc(true)
        }
        if (nodeBytes >= GATHERED_BYTES) {
          yield { nodes: inOrder(nodes), records: [] }
          ;[nodes, nodeBytes] = [[], 0]
        }
        await setImmediate()
      }
    } catch (error) {
      throw refusalOf(error)
    }
    yield { nodes: inOrder(nodes), records }
  }

  #record(path: string, cid: Cid): ImportedRecord {
    const bytes = cid.code === codecs.dagCbor ? this.blocks.get(cid) : null
    if (bytes === null) throw invalidRequest(`CAR does not contain the record at '${path}'`)
    return importedRecord(path, { cid, bytes })
  }

  close(): void {
    this.blocks.close()
  }
}

function commitOf(did: Did, bytes: Uint8Array): Commit {
  const commit = parseCommit(bytes)
  if (commit.did !== did) throw forbidden(`The repository belongs to ${commit.did}`)
  return commit
}

const inOrder = (nodes: Block[]): Block[] => nodes.sort((a, b) => Buffer.compare(a.cid.bytes, b.cid.bytes))

function importedRecord(path: string, { cid, bytes }: Block): ImportedRecord {
  const slash = path.indexOf('/')
  const collection = parseNsid(path.slice(0, slash))
  const rkey = parseRecordKey(path.slice(slash + 1))
  if (collection === null || rkey === null) throw invalidRequest(`Not a record path: '${path}'`)
  if (bytes.length > MAX_RECORD_BYTES)
    throw invalidRequest(`The record at '${path}' has more than ${MAX_RECORD_BYTES} bytes`)
  const data = dataOf(path, bytes)
  return { path, cid, value: bytes, subject: subjectOf(collection, data), blobs: blobCids(data) }
}

function dataOf(path: string, bytes: Uint8Array): DataObject {
  try {
    const excess = excessOf(bytes)
    if (excess !== null) throw invalidRequest(`The record at '${path}' has ${excess}`)
    const data = decode(bytes)
    if (typeof data === 'object' && data !== null && '$type' in data) return data as DataObject
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  throw invalidRequest(`Could not parse record at '${path}'`)
}

const refusalOf = (error: unknown): unknown => (error instanceof Malformed ? invalidRequest(error.message) : error)
