/**
 * The newest nodes of a tree, packed into the row of their repository. `docs/design/fresh-nodes.md` explains why and
 * shows an example.
 *
 * Layout: version, number of stale CIDs, the stale CIDs, then revision, CID, length and block of each fresh node.
 * Because every commit reads and rewrites them, they are not unpacked: a change copies the unchanged bytes in as few
 * pieces as possible.
 */
import { Cid, CID_BYTES_LENGTH, isAt } from '../../../protocol/cid.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'

export interface RevisedBlock extends Block {
  /** Revision of the commit that created it. */
  rev: Tid
}

/** The first byte. Older rows have it too: it was the highest byte of a count, and always zero. */
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

  readonly #bytes: Buffer

  /** Throws `Malformed` if the version is unknown. */
  constructor(readonly packed: Uint8Array) {
    if (packed[0] !== VERSION) throw new Malformed(`packed nodes of version ${packed[0]} instead of ${VERSION}`)
    this.#bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.length)
  }

  get staleCount(): number {
    return this.#bytes.readUIntBE(VERSION_BYTES, COUNT_BYTES)
  }

  get #nodesStart(): number {
    return HEAD_BYTES + this.staleCount * CID_BYTES_LENGTH
  }

  #endOf(start: number): number {
    return start + NODE_HEAD_BYTES + this.#bytes.readUInt32BE(start + NODE_HEAD_BYTES - LENGTH_BYTES)
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

  #cidBytes(start: number): Uint8Array {
    return this.#bytes.subarray(start + REV_BYTES, start + REV_BYTES + CID_BYTES_LENGTH)
  }

  #node({ start, end }: Place): RevisedBlock {
    const rev = this.#bytes.toString('latin1', start, start + REV_BYTES) as Tid
    return { rev, cid: new Cid(this.#cidBytes(start)), bytes: this.#bytes.subarray(start + NODE_HEAD_BYTES, end) }
  }

  /** Returns the node, which shares memory with `packed`; null if it is not fresh. */
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
      const start = HEAD_BYTES + i * CID_BYTES_LENGTH
      return new Cid(this.#bytes.subarray(start, start + CID_BYTES_LENGTH))
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
   * The fresh nodes after a commit. A node that returns to the tree is fresh, and its old row stays stale: it has
   * another revision.
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
    const target = Buffer.allocUnsafe(length)
    let at = source.copy(target, 0, 0, this.#nodesStart)
    target.writeUIntBE(this.staleCount + stale.length, VERSION_BYTES, COUNT_BYTES)
    for (const cid of stale) {
      target.set(cid.bytes, at)
      at += CID_BYTES_LENGTH
    }
    let from = this.#nodesStart
    for (const { start, end } of gone) {
      at += source.copy(target, at, from, start)
      from = end
    }
    at += source.copy(target, at, from)
    for (const { cid, bytes } of created) at = writeNode(target, at, rev, cid, bytes)
    return target
  }

  /** The nodes of one revision, without stale CIDs: the caller has deleted their rows. */
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

function writeNode(target: Buffer, at: number, rev: Tid, cid: Cid, block: Uint8Array): number {
  target.write(rev, at, 'latin1')
  target.set(cid.bytes, at + REV_BYTES)
  target.writeUInt32BE(block.length, at + NODE_HEAD_BYTES - LENGTH_BYTES)
  target.set(block, at + NODE_HEAD_BYTES)
  return at + NODE_HEAD_BYTES + block.length
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
