/**
 * The newest nodes of a tree, packed into the row of their repository. `docs/design/fresh-nodes.md` explains why and
 * shows an example.
 *
 * Layout: version, number of stale CIDs, the stale CIDs, then revision, CID, length and block of each fresh node. Every
 * commit reads and rewrites these bytes, so a change does not unpack them: it copies the unchanged bytes in as few
 * pieces as possible.
 */
import { Cid, cidAt, CID_BYTES_LENGTH, isAt } from '../../../protocol/cid.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'

export interface RevisedBlock extends Block {
  /** Revision of the commit that created it. */
  rev: Tid
}

/** The first byte. Older rows have this byte too: there it was the highest byte of a count, which was always zero. */
const VERSION = 0
const VERSION_BYTES = 1
const COUNT_BYTES = 3
const HEAD_BYTES = VERSION_BYTES + COUNT_BYTES
const REV_BYTES = 13
const LENGTH_BYTES = 4
const NODE_HEAD_BYTES = REV_BYTES + CID_BYTES_LENGTH + LENGTH_BYTES
/** Where the digest starts in a CID. Its first bytes tell most nodes apart. */
const DIGEST_OFFSET = 4

/** Where a node is in the packed bytes. */
interface Place {
  start: number
  end: number
}

export class FreshNodes {
  static readonly none = new FreshNodes(new Uint8Array([VERSION, 0, 0, 0]))

  readonly #bytes: Uint8Array

  /** Throws `Malformed` if the version is unknown. */
  constructor(readonly packed: Uint8Array) {
    if (packed[0] !== VERSION) throw new Malformed(`packed nodes of version ${packed[0]} instead of ${VERSION}`)
    this.#bytes = packed
  }

  get staleCount(): number {
    return numberAt(this.#bytes, VERSION_BYTES, COUNT_BYTES)
  }

  get #nodesStart(): number {
    return HEAD_BYTES + this.staleCount * CID_BYTES_LENGTH
  }

  #endOf(start: number): number {
    return start + NODE_HEAD_BYTES + numberAt(this.#bytes, start + NODE_HEAD_BYTES - LENGTH_BYTES, LENGTH_BYTES)
  }

  #place(cid: Cid): Place | null {
    const bytes = this.#bytes
    const key = keyOf(cid.bytes, 0)
    for (let start = this.#nodesStart; start < bytes.length;) {
      const end = this.#endOf(start)
      if (keyOf(bytes, start + REV_BYTES) === key && isAt(bytes, start + REV_BYTES, cid.bytes)) return { start, end }
      start = end
    }
    return null
  }

  #node({ start, end }: Place): RevisedBlock {
    const rev = latin1At(this.#bytes, start, REV_BYTES) as Tid
    return { rev, cid: cidAt(this.#bytes, start + REV_BYTES), bytes: this.#bytes.slice(start + NODE_HEAD_BYTES, end) }
  }

  /** Returns the node; null if it is not fresh. */
  get(cid: Cid): RevisedBlock | null {
    const place = this.#place(cid)
    return place && this.#node(place)
  }

  has(cid: Cid): boolean {
    return this.#place(cid) !== null
  }

  get nodes(): RevisedBlock[] {
    const nodes: RevisedBlock[] = []
    for (let start = this.#nodesStart; start < this.#bytes.length; start = this.#endOf(start))
      nodes.push(this.#node({ start, end: this.#endOf(start) }))
    return nodes
  }

  /** CIDs of nodes in `repo_node` that are no longer in the tree. */
  get stale(): Cid[] {
    return Array.from({ length: this.staleCount }, (_, i) => {
      return cidAt(this.#bytes, HEAD_BYTES + i * CID_BYTES_LENGTH)
    })
  }

  /** Whether the node is in `repo_node` but no longer in the tree. */
  isStale(cid: Cid): boolean {
    const key = keyOf(cid.bytes, 0)
    for (let start = HEAD_BYTES; start < this.#nodesStart; start += CID_BYTES_LENGTH) {
      if (keyOf(this.#bytes, start) === key && isAt(this.#bytes, start, cid.bytes)) return true
    }
    return false
  }

  /**
   * Returns the fresh nodes after a commit. A node that returns to the tree becomes fresh, and its old row in
   * `repo_node` stays stale because that row has another revision.
   */
  after({ rev, created, removed }: { rev: Tid; created: readonly Block[]; removed: readonly Cid[] }): FreshNodes {
    const gone: Place[] = []
    const stale: Cid[] = []
    for (const cid of removed) {
      const place = this.#place(cid)
      if (place) gone.push(place)
      else stale.push(cid)
    }
    gone.sort((a, b) => a.start - b.start)
    return new FreshNodes(this.#rewritten(rev, created, stale, gone))
  }

  #rewritten(rev: Tid, created: readonly Block[], stale: readonly Cid[], gone: readonly Place[]): Uint8Array {
    const source = this.#bytes
    let length = source.length + stale.length * CID_BYTES_LENGTH
    for (const { start, end } of gone) length -= end - start
    for (const { bytes } of created) length += NODE_HEAD_BYTES + bytes.length
    const target = new Uint8Array(length)
    let at = copy.call(source, target, 0, 0, this.#nodesStart)
    writeNumber(target, VERSION_BYTES, COUNT_BYTES, this.staleCount + stale.length)
    for (const cid of stale) {
      target.set(cid.bytes, at)
      at += CID_BYTES_LENGTH
    }
    let from = this.#nodesStart
    for (const { start, end } of gone) {
      at += copy.call(source, target, at, from, start)
      from = end
    }
    at += copy.call(source, target, at, from, source.length)
    for (const { cid, bytes } of created) at = writeNode(target, at, rev, cid, bytes)
    return target
  }

  /** Returns only the nodes of one revision, without the stale CIDs, whose rows the caller has deleted. */
  only(rev: Tid): FreshNodes {
    return FreshNodes.none.after({ rev, created: this.nodes.filter((node) => node.rev === rev), removed: [] })
  }
}

/** Bytes of nodes in packed form, without stale CIDs. */
export function packedBytes(nodes: readonly Block[]): number {
  let length = HEAD_BYTES
  for (const { bytes } of nodes) length += NODE_HEAD_BYTES + bytes.length
  return length
}

/** The packed form of no nodes. */
export const noFreshNodes: Uint8Array = FreshNodes.none.packed

/** The nodes of a row that may be damaged; none if they cannot be read. */
export function readableNodes(packed: Uint8Array): RevisedBlock[] {
  try {
    return new FreshNodes(packed).nodes
  } catch (error) {
    if (error instanceof Malformed || error instanceof RangeError) return []
    throw error
  }
}

function writeNode(target: Uint8Array, at: number, rev: Tid, cid: Cid, block: Uint8Array): number {
  for (let i = 0; i < REV_BYTES; i++) target[at + i] = rev.charCodeAt(i)
  target.set(cid.bytes, at + REV_BYTES)
  writeNumber(target, at + NODE_HEAD_BYTES - LENGTH_BYTES, LENGTH_BYTES, block.length)
  target.set(block, at + NODE_HEAD_BYTES)
  return at + NODE_HEAD_BYTES + block.length
}

/**
 * Copies part of an array into another array without making a view: for a view, the engine would first move the array
 * to memory that can be shared.
 */
const copy = Buffer.prototype.copy as (
  this: Uint8Array,
  target: Uint8Array,
  targetStart: number,
  start: number,
  end: number,
) => number

/** Reads a big-endian number of `count` bytes. Throws `RangeError` beyond the end, which damaged nodes may point to. */
function numberAt(bytes: Uint8Array, start: number, count: number): number {
  if (start + count > bytes.length) throw new RangeError('packed nodes are truncated')
  let number = 0
  for (let i = start; i < start + count; i++) number = number * 256 + (bytes[i] as number)
  return number
}

function writeNumber(bytes: Uint8Array, start: number, count: number, number: number): void {
  for (let i = start + count - 1, rest = number; i >= start; i--, rest >>>= 8) bytes[i] = rest
}

function latin1At(bytes: Uint8Array, start: number, length: number): string {
  let text = ''
  for (let i = start; i < start + length; i++) text += String.fromCharCode(bytes[i] as number)
  return text
}

/** Four bytes of the digest, as a number for a quick comparison. */
function keyOf(bytes: Uint8Array, cidStart: number): number {
  const at = cidStart + DIGEST_OFFSET
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}
