/**
 * An archive of a stranger, read and checked before anything of it counts.
 *
 * Its blocks go into a file without a name as they arrive; then the tree is walked from the root of the commit, so that
 * what is taken over is what the commit vouches for, whatever else the archive holds. Memory does not grow with it.
 */
import { setImmediate } from 'node:timers/promises'
import { forbidden, invalidRequest } from '../../http/errors.ts'
import { BlockFile } from '../../platform/files/block-file.ts'
import { readSections, type Block } from '../../protocol/car.ts'
import { decode, type DataObject } from '../../protocol/cbor.ts'
import { codecs, type Cid } from '../../protocol/cid.ts'
import { parseCommit, type Commit } from '../../protocol/commit.ts'
import { blobCids } from '../../protocol/data-model.ts'
import { parseNsid, parseRecordKey, type Did } from '../../protocol/identifiers.ts'
import { Malformed } from '../../protocol/malformed.ts'
import { walkTree } from '../../protocol/mst.ts'
import { subjectOf, type NewRecord } from '../repo/repo.ts'

/** Most blocks of one archive. */
const MAX_BLOCKS = 4_000_000
/** Records handed on at once, and their bytes, which the last one of a page may exceed. */
const PAGE_RECORDS = 4000
const PAGE_BYTES = 2 * 1024 * 1024
/**
 * Pages of records after which garbage is collected. What is in use while a page is stored outlives the small
 * collections of the engine, which lets the heap grow to several times that before a full one. Not more often, for it
 * stops the server for tens of milliseconds.
 */
const PAGES_PER_COLLECTION = 16
/** Bytes of nodes that are gathered, to be handed on in the order of their CIDs. */
const GATHERED_BYTES = 4 * 1024 * 1024

export interface ImportedRecord extends NewRecord {
  /** CIDs of the blobs that it refers to. */
  blobs: readonly string[]
}

/** In the order in which they are stored: records by path, nodes by CID as far as they were gathered. */
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
      const { roots, pages } = await readSections(archive)
      const [root] = roots
      if (root === undefined || roots.length > 1) throw invalidRequest('expected one root')
      for await (const page of pages) {
        for (const section of page) blocks.add(section)
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

  /** Every node and every record of the tree, checked on the way. */
  async *pages(): AsyncGenerator<ImportedPage> {
    let [nodes, records]: [Block[], ImportedRecord[]] = [[], []]
    let [nodeBytes, recordBytes] = [0, 0]
    let count = 0
    try {
      for await (const page of walkTree(this.commit.data, async (cid) => this.blocks.get(cid))) {
        nodes.push(...page.nodes)
        for (const { bytes } of page.nodes) nodeBytes += bytes.length
        for (const [path, cid] of page.entries) {
          const record = this.#record(path, cid)
          records.push(record)
          recordBytes += record.value.length
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
    if (bytes === null) throw invalidRequest(`CAR does not hold the record at '${path}'`)
    return importedRecord(path, { cid, bytes })
  }

  close(): void {
    this.blocks.close()
  }
}

const inOrder = (nodes: Block[]): Block[] => nodes.sort((a, b) => Buffer.compare(a.cid.bytes, b.cid.bytes))

function importedRecord(path: string, { cid, bytes }: Block): ImportedRecord {
  const slash = path.indexOf('/')
  const collection = parseNsid(path.slice(0, slash))
  const rkey = parseRecordKey(path.slice(slash + 1))
  if (collection === null || rkey === null) throw invalidRequest(`Not a record path: '${path}'`)
  const data = dataOf(path, bytes)
  return { path, cid, value: bytes, subject: subjectOf(collection, data), blobs: blobCids(data) }
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
