/**
 * Commits: the signed root of a repository, and the function that builds the next one from a list of writes.
 *
 * `buildCommit` touches nothing outside its arguments. It returns the blocks to store, the nodes to delete, and the CAR
 * of the event. The CAR holds the commit, every node and record that the commit created, and the nodes that cover the
 * key of each operation. With it, a reader can invert the operations and arrive at `prevData` without any other block.
 *
 * Source: atproto "Repository", "Commit Objects"; "Data Synchronization", "Reliable Repository Synchronization".
 */
import { type Block, SmallCar } from './car.ts'
import { decode, encode } from './cbor.ts'
import { Cid, cidOfCbor } from './cid.ts'
import { type Did, parseDid, parseTid, type Tid } from './identifiers.ts'
import type { PublicKey, SigningKey } from './keys.ts'
import { Malformed } from './malformed.ts'
import { type BlockReader, MissingBlock, Mst, type NodeCache } from './mst.ts'

const COMMIT_VERSION = 3

export interface UnsignedCommit {
  did: Did
  version: typeof COMMIT_VERSION
  /** Root of the tree. */
  data: Cid
  rev: Tid
  /** A relic of version 2: always present, always null. */
  prev: null
}

export interface Commit extends UnsignedCommit {
  sig: Uint8Array
}

export const unsignedCommit = (did: Did, rev: Tid, data: Cid): UnsignedCommit => ({
  did,
  version: COMMIT_VERSION,
  data,
  rev,
  prev: null,
})

export function signCommit(unsigned: UnsignedCommit, key: SigningKey): Block {
  const bytes = encode({ ...unsigned, sig: key.sign(encode({ ...unsigned })) })
  return { cid: cidOfCbor(bytes), bytes }
}

const commitFields = ['did', 'version', 'data', 'rev', 'prev', 'sig']

/** Read a commit block without checking its signature. Throws `Malformed`. */
export function parseCommit(bytes: Uint8Array): Commit {
  const data = decode(bytes) as Partial<Record<keyof Commit, unknown>> | null
  if (typeof data !== 'object' || data === null) throw new Malformed('Commit is not a map')
  if (data.version !== COMMIT_VERSION) throw new Malformed(`Commit version is not ${COMMIT_VERSION}`)
  const wellFormed =
    commitFields.every((field) => Object.hasOwn(data, field)) &&
    typeof data.did === 'string' &&
    parseDid(data.did) !== null &&
    data.data instanceof Cid &&
    typeof data.rev === 'string' &&
    parseTid(data.rev) !== null &&
    data.prev === null &&
    data.sig instanceof Uint8Array
  if (!wellFormed) throw new Malformed('Commit has missing, unknown or malformed fields')
  return data as unknown as Commit
}

export function verifyCommit({ sig, ...unsigned }: Commit, key: PublicKey): boolean {
  return key.verify(encode({ ...unsigned }), sig)
}

/** One change of a record. `path` is collection, slash, record key. */
export type RecordWrite = {
  path: string
  /** CID that the record must have before the write; null if the record must not exist. Not checked if undefined. */
  swapRecord?: Cid | null
} & ({ action: 'create' | 'update'; record: Block } | { action: 'delete' })

export interface RepoOp {
  action: 'create' | 'update' | 'delete'
  path: string
  /** The record after the operation; `null` for a delete. */
  cid: Cid | null
  /** The record before the operation; `null` for a create. */
  prev: Cid | null
}

export interface CommitRequest {
  did: Did
  rev: Tid
  /** Root of the tree before this commit; `null` for the first commit. */
  prevData: Cid | null
  writes: readonly RecordWrite[]
  key: SigningKey
  read: BlockReader
  cache?: NodeCache
}

export interface BuiltCommit {
  ok: true
  /** The new head. */
  commit: Block
  data: Cid
  prevData: Cid | null
  ops: RepoOp[]
  /** Tree nodes to store, besides the records of the writes and the commit. */
  nodes: Block[]
  /** Tree nodes that are no longer reachable. The caller decides about old records and the old commit. */
  removedNodes: Cid[]
  /** The CAR of the event, with the commit as its root. */
  car: SmallCar
}

export type CommitFault =
  | { ok: false; error: 'InvalidSwap'; path: string; current: Cid | null }
  | { ok: false; error: 'RecordExists' | 'RecordNotFound' | 'DuplicatePath'; path: string }
  | { ok: false; error: 'TooManyWrites'; limit: number }
  | { ok: false; error: 'EventTooLarge'; limit: number }

/** Most operations in one commit, and most bytes of its CAR. Relays accept no more. */
export const MAX_OPS_PER_COMMIT = 200
export const MAX_EVENT_BYTES = 2_000_000

export function buildCommit({
  did,
  rev,
  prevData,
  writes,
  key,
  read,
  cache,
}: CommitRequest): BuiltCommit | CommitFault {
  if (writes.length > MAX_OPS_PER_COMMIT) return { ok: false, error: 'TooManyWrites', limit: MAX_OPS_PER_COMMIT }

  const tree = new Mst(prevData, read, cache)
  const ops: RepoOp[] = []
  const paths = writes.length === 1 ? null : new Set<string>()
  for (const write of writes) {
    // One operation per path, because readers of the event could not invert two.
    if (paths !== null && paths.size === paths.add(write.path).size)
      return { ok: false, error: 'DuplicatePath', path: write.path }
    const current = tree.get(write.path)
    const fault = checkWrite(write, current)
    if (fault !== null) return fault
    if (write.action === 'delete') tree.delete(write.path)
    else tree.put(write.path, write.record.cid)
    ops.push({
      action: write.action,
      path: write.path,
      cid: write.action === 'delete' ? null : write.record.cid,
      prev: current,
    })
  }

  const { root: data, created: nodes, removed: removedNodes } = tree.flush()
  const commit = signCommit(unsignedCommit(did, rev, data), key)
  const car = new SmallCar(commit.cid, eventBlocks(tree, { commit, nodes, writes, read }))
  if (car.length > MAX_EVENT_BYTES) return { ok: false, error: 'EventTooLarge', limit: MAX_EVENT_BYTES }
  return { ok: true, commit, data, prevData, ops, nodes, removedNodes, car }
}

function checkWrite(write: RecordWrite, current: Cid | null): CommitFault | null {
  const { path, swapRecord } = write
  if (swapRecord !== undefined && !(swapRecord === null ? current === null : swapRecord.equals(current))) {
    return { ok: false, error: 'InvalidSwap', path, current }
  }
  if (write.action === 'create') return current === null ? null : { ok: false, error: 'RecordExists', path }
  return current === null ? { ok: false, error: 'RecordNotFound', path } : null
}

interface EventParts {
  commit: Block
  nodes: readonly Block[]
  writes: readonly RecordWrite[]
  read: BlockReader
}

/** The commit, new nodes from the root down, older covering nodes, and records, each once. */
function eventBlocks(tree: Mst, { commit, nodes, writes, read }: EventParts): Block[] {
  const blocks = [commit]
  for (let i = nodes.length - 1; i >= 0; i--) blocks.push(nodes[i] as Block)
  const known = writes.length === 1 ? null : new Set(blocks.map(({ cid }) => cid.toString()))
  /** A single write has a dozen blocks at most, and searching those is faster than a set. */
  const isNew = (cid: Cid): boolean =>
    known === null ? !blocks.some((block) => block.cid.equals(cid)) : known.size < known.add(cid.toString()).size
  for (const write of writes) {
    // An update moves no key: the new nodes already contain its path.
    const covering = write.action === 'update' ? tree.path(write.path) : tree.coveringProof(write.path)
    for (const cid of covering) {
      if (!isNew(cid)) continue
      const bytes = read(cid)
      if (bytes === null) throw new MissingBlock(cid)
      blocks.push({ cid, bytes })
    }
  }
  for (const write of writes) if (write.action !== 'delete' && isNew(write.record.cid)) blocks.push(write.record)
  return blocks
}
