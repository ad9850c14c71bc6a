/**
 * An archive of a stranger, read and checked before anything of it counts.
 *
 * Its blocks go into a file without a name as they arrive; then the tree is walked from the root of the commit, so that
 * what is taken over is what the commit vouches for, whatever else the archive holds. Memory does not grow with it.
 */
import { setImmediate } from 'node:timers/promises'
import { forbidden, invalidRequest } from '../../http/errors.ts'
import { BlockFile } from '../../platform/block-file.ts'
import { readCar, type Block } from '../../protocol/car.ts'
import { decode, type DataObject } from '../../protocol/cbor.ts'
import { codecs, type Cid } from '../../protocol/cid.ts'
import { parseCommit, type Commit } from '../../protocol/commit.ts'
import { findBlobs } from '../../protocol/data-model.ts'
import { parseNsid, parseRecordKey, type Did, type Nsid, type RecordKey } from '../../protocol/identifiers.ts'
import { Malformed } from '../../protocol/malformed.ts'
import { walkTree } from '../../protocol/mst.ts'

/** Most blocks of one archive. */
const MAX_BLOCKS = 4_000_000
/** Blocks handed on at once, and their bytes, which the last block of a page may exceed. */
const PAGE_BLOCKS = 2000
const PAGE_BYTES = 1024 * 1024

export interface ImportedRecord extends Block {
  collection: Nsid
  rkey: RecordKey
  data: DataObject
  /** CIDs of the blobs that it refers to. */
  blobs: string[]
}

export interface ImportedPage {
  nodes: Block[]
  records: ImportedRecord[]
}

export class ImportedRepo {
  private constructor(
    readonly root: Cid,
    readonly commit: Commit,
    readonly blocks: BlockFile,
  ) {}

  /** Take in an archive. Refuses what is no repository of `did`. `dir` is where the blocks lie meanwhile. */
  static async receive(did: Did, archive: AsyncIterable<Uint8Array>, dir: string): Promise<ImportedRepo> {
    const blocks = new BlockFile(dir)
    try {
      const { roots, pages } = await readCar(archive)
      const [root] = roots
      if (root === undefined || roots.length > 1) throw invalidRequest('expected one root')
      for await (const page of pages) {
        for (const block of page) blocks.add(block)
        if (blocks.count > MAX_BLOCKS) throw invalidRequest(`CAR has more than ${MAX_BLOCKS} blocks`)
      }
      const bytes = blocks.get(root)
      if (bytes === null) throw invalidRequest('CAR does not hold its root')
      const commit = parseCommit(bytes)
      if (commit.did !== did) throw forbidden(`The repository belongs to ${commit.did}`)
      return new ImportedRepo(root, commit, blocks)
    } catch (error) {
      blocks.close()
      throw refusalOf(error)
    }
  }

  /** Every node and every record of the tree, checked on the way; records in the order of their paths. */
  async *pages(): AsyncGenerator<ImportedPage> {
    let page: ImportedPage = { nodes: [], records: [] }
    let bytes = 0
    try {
      for await (const block of this.#walk()) {
        if ('data' in block) page.records.push(block)
        else page.nodes.push(block)
        bytes += block.bytes.length
        if (page.nodes.length + page.records.length < PAGE_BLOCKS && bytes < PAGE_BYTES) continue
        yield page
        page = { nodes: [], records: [] }
        bytes = 0
        await setImmediate()
      }
    } catch (error) {
      throw refusalOf(error)
    }
    yield page
  }

  async *#walk(): AsyncGenerator<Block | ImportedRecord> {
    for await (const { nodes, entries } of walkTree(this.commit.data, async (cid) => this.blocks.get(cid))) {
      yield* nodes
      for (const [path, cid] of entries) {
        const bytes = cid.code === codecs.dagCbor ? this.blocks.get(cid) : null
        if (bytes === null) throw invalidRequest(`CAR does not hold the record at '${path}'`)
        yield importedRecord(path, { cid, bytes })
      }
    }
  }

  close(): void {
    this.blocks.close()
  }
}

function importedRecord(path: string, block: Block): ImportedRecord {
  const slash = path.indexOf('/')
  const collection = parseNsid(path.slice(0, slash))
  const rkey = parseRecordKey(path.slice(slash + 1))
  if (collection === null || rkey === null) throw invalidRequest(`Not a record path: '${path}'`)
  const data = dataOf(path, block.bytes)
  const { blobs, legacy } = findBlobs(data)
  return { ...block, collection, rkey, data, blobs: [...new Set([...blobs.map(({ ref }) => ref.toString()), ...legacy])] }
}

function dataOf(path: string, bytes: Uint8Array): DataObject {
  try {
    const data = decode(bytes)
    if (typeof data === 'object' && data !== null && '$type' in data) return data as DataObject
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  throw invalidRequest(`Could not parse record at '${path}'`)
}

const refusalOf = (error: unknown): unknown => (error instanceof Malformed ? invalidRequest(error.message) : error)
