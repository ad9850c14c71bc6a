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
import { decode, type Data } from '../../protocol/cbor.ts'
import { codecs, type Cid } from '../../protocol/cid.ts'
import { parseCommit, type Commit } from '../../protocol/commit.ts'
import { findBlobs } from '../../protocol/data-model.ts'
import { parseNsid, parseRecordKey, type Did, type Nsid, type RecordKey } from '../../protocol/identifiers.ts'
import { Malformed } from '../../protocol/malformed.ts'
import { walkTree } from '../../protocol/mst.ts'

/** Most blocks of one archive. */
const MAX_BLOCKS = 4_000_000
/** Blocks handed on at once, and their bytes, which the last block of a page may exceed. */
const PAGE_BLOCKS = 500
const PAGE_BYTES = 1024 * 1024

export interface ImportedRecord {
  collection: Nsid
  rkey: RecordKey
  cid: Cid
  /** CIDs of the blobs that it refers to. */
  blobs: string[]
}

export interface ImportedPage {
  blocks: Block[]
  records: ImportedRecord[]
  bytes: number
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

  /** Every node and every record of the tree, checked on the way. A record that has several keys comes once for each. */
  async *pages(): AsyncGenerator<ImportedPage> {
    let page = emptyPage()
    try {
      for await (const block of this.#walk()) {
        page.blocks.push(block)
        if (block.record) page.records.push(block.record)
        page.bytes += block.bytes.length
        if (page.blocks.length < PAGE_BLOCKS && page.bytes < PAGE_BYTES) continue
        yield page
        page = emptyPage()
        await setImmediate()
      }
    } catch (error) {
      throw refusalOf(error)
    }
    yield page
  }

  async *#walk(): AsyncGenerator<Block & { record?: ImportedRecord }> {
    for await (const { block, entries } of walkTree(this.commit.data, async (cids) => cids.map((cid) => this.blocks.get(cid)))) {
      yield block
      for (const [path, cid] of entries) {
        const bytes = cid.code === codecs.dagCbor ? this.blocks.get(cid) : null
        if (bytes === null) throw invalidRequest(`CAR does not hold the record at '${path}'`)
        yield { cid, bytes, record: importedRecord(path, cid, bytes) }
      }
    }
  }

  close(): void {
    this.blocks.close()
  }
}

const emptyPage = (): ImportedPage => ({ blocks: [], records: [], bytes: 0 })

function importedRecord(path: string, cid: Cid, bytes: Uint8Array): ImportedRecord {
  const slash = path.indexOf('/')
  const collection = parseNsid(path.slice(0, slash))
  const rkey = parseRecordKey(path.slice(slash + 1))
  if (collection === null || rkey === null) throw invalidRequest(`Not a record path: '${path}'`)
  const { blobs, legacy } = findBlobs(recordOf(path, bytes))
  return { collection, rkey, cid, blobs: [...new Set([...blobs.map(({ ref }) => ref.toString()), ...legacy])] }
}

function recordOf(path: string, bytes: Uint8Array): Data {
  try {
    const record = decode(bytes)
    if (typeof record === 'object' && record !== null && '$type' in record) return record
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  throw invalidRequest(`Could not parse record at '${path}'`)
}

const refusalOf = (error: unknown): unknown => (error instanceof Malformed ? invalidRequest(error.message) : error)
