/**
 * Tree nodes, between the database and a commit that is being built.
 *
 * `buildCommit` reads synchronously, the database asynchronously. The nodes on the paths of all writes are therefore
 * loaded first, with one statement per layer. If the commit needs any other node, it is fetched and the commit is built
 * again.
 */
import { perContext } from '../../../platform/context.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { SmallMap } from '../../../base/small-map.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import {
  buildCommit,
  MAX_EVENT_BYTES,
  type BuiltCommit,
  type CommitFault,
  type CommitRequest,
  type RecordWrite,
} from '../../../protocol/commit.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { MissingBlock, type NodeCache } from '../../../protocol/mst.ts'
import {
  decodeNode,
  decodeRoot,
  layerOfRoot,
  subtreeTowards,
  type MstNode,
  type Subtree,
} from '../../../protocol/mst-node.ts'
import type { StoredNodes } from './node-store.ts'

/** Bytes of decoded nodes cached between commits, for all repositories together: room for about 40,000 of 1.5 KiB. */
const MAX_CACHED_BYTES = 64 * 1024 ** 2
/**
 * Bytes of the largest node that is cached. Someone who chooses record keys for it can make a node that takes 12 MiB,
 * and a few of those would displace all others. With keys that were not chosen, not one in a million trees has a node
 * of a hundred entries.
 */
const MAX_CACHED_NODE_BYTES = 128 * 1024
/**
 * A longer block is searched for a path without being decoded: decoding takes seven times as long and creates objects.
 */
const MAX_DECODED_BYTES = 32 * 1024
/**
 * Memory of a node, and of each of its entries without its key. A key is in memory twice: in the entry and in the
 * block.
 */
const NODE_BYTES = 200
const ENTRY_BYTES = 300

/** Nodes that a commit may read beside those on the paths of its writes. No tree is known to need any. */
const MAX_MISSING_NODES = 64

/**
 * Most nodes that a commit reads at once, and the bytes that it may read for each write in addition to those of the
 * largest event; cached nodes do not count. The event of a commit has all nodes that the commit reads, unchanged or
 * rewritten, except for the entries that it deletes, so a commit that reads more is too large anyway. With chosen
 * record keys, a single node can have as many bytes as an event.
 */
const LOADED_AT_ONCE = 64
const SPARE_BYTES_PER_WRITE = 16 * 1024

/** Thrown if a commit would read more bytes of nodes than it could write. */
class LoadedTooMuch extends Error {}

type RecentNodes = BoundedCache<MstNode>

/** Recently used nodes, by the text of their CIDs. */
export const recentNodes = perContext((): RecentNodes => new BoundedCache(MAX_CACHED_BYTES, weightOf))

function weightOf(_: string, { keys }: MstNode): number {
  let bytes = NODE_BYTES + keys.length * ENTRY_BYTES
  for (const key of keys) bytes += 2 * key.length
  return bytes
}

function keep(recent: RecentNodes, cid: string, node: MstNode): void {
  if (weightOf(cid, node) <= MAX_CACHED_NODE_BYTES) recent.set(cid, node)
}

/**
 * Build a commit on a stored tree. Returns the commit, or the fault of the request. Throws `Malformed` if the tree is
 * damaged.
 */
export async function buildOnStored(
  stored: StoredNodes,
  recent: RecentNodes,
  request: Omit<CommitRequest, 'read' | 'cache'>,
): Promise<BuiltCommit | CommitFault> {
  try {
    return await built(stored, recent, request)
  } catch (error) {
    if (error instanceof LoadedTooMuch) return { ok: false, error: 'EventTooLarge', limit: MAX_EVENT_BYTES }
    throw error
  }
}

async function built(
  stored: StoredNodes,
  recent: RecentNodes,
  request: Omit<CommitRequest, 'read' | 'cache'>,
): Promise<BuiltCommit | CommitFault> {
  const { writes, prevData } = request
  const nodes = new LoadedNodes(stored, recent, MAX_EVENT_BYTES + writes.length * SPARE_BYTES_PER_WRITE)
  if (prevData !== null) await nodes.loadPaths(prevData, writes)
  for (let missing = 0; ; missing++) {
    try {
      const commit = buildCommit({ ...request, read: (cid) => nodes.block(cid), cache: nodes })
      if (commit.ok) for (const cid of commit.removedNodes) recent.delete(cid.toString())
      return commit
    } catch (error) {
      if (!(error instanceof MissingBlock)) throw error
      if (missing === MAX_MISSING_NODES)
        throw new Malformed(
          `a commit on repository ${stored.repoId} reads more than ${MAX_MISSING_NODES} nodes beside the paths of its writes`,
        )
      await nodes.fetch([error.cid])
    }
  }
}

/**
 * The nodes from the root to a record, or to the place where it would be. Throws `Malformed` if the tree is damaged.
 */
export async function pathBlocks(stored: StoredNodes, data: Cid, recent: RecentNodes, path: string): Promise<Block[]> {
  const blocks: Block[] = []
  let layer: number | null = null
  for (let cid: Cid | null = data; cid !== null;) {
    const text: string = cid.toString()
    const known: MstNode | undefined = recent.use(text)
    const bytes: Uint8Array = known?.block ?? (await readBlocks(stored, [cid]))[0]!.bytes
    blocks.push({ cid, bytes })
    if (known === undefined && bytes.length > MAX_DECODED_BYTES) {
      layer = (layer ?? layerOfRoot(bytes)) - 1
      cid = subtreeTowards(bytes, path)
      continue
    }
    const node: MstNode = known ?? decoded(bytes, layer)
    if (known === undefined) keep(recent, text, node)
    const i = node.lowerBound(path)
    cid = node.keys[i] === path ? null : (node.subtrees[i] as Cid | null)
    layer = node.layer - 1
  }
  return blocks
}

/** Throws `Malformed` if a node is missing, which means that the tree is damaged. */
async function readBlocks(stored: StoredNodes, cids: readonly Cid[]): Promise<Block[]> {
  const blocks = await stored.find(cids)
  if (blocks.length < cids.length) throw new Malformed(`repository ${stored.repoId} lacks nodes of its tree`)
  return blocks
}

/**
 * Decodes a node; `layer` is null for the root. The only root without keys is that of the empty tree, which has no
 * subtrees either.
 */
const decoded = (bytes: Uint8Array, layer: number | null): MstNode =>
  layer === null ? decodeRoot(bytes, keylessRoot) : decodeNode(bytes, layer)

const keylessRoot = (): never => {
  throw new Malformed('the root of a tree holds no key')
}

/**
 * The subtree in which the key would be. If the node has the key: the subtrees on both sides of it for a deletion,
 * otherwise none.
 */
function childrenFor(node: MstNode, { path, action }: RecordWrite): readonly Subtree[] {
  const i = node.lowerBound(path)
  if (node.keys[i] !== path) return node.subtrees.slice(i, i + 1)
  return action === 'delete' ? node.subtrees.slice(i, i + 2) : []
}

class LoadedNodes implements NodeCache {
  readonly #nodes = new SmallMap<MstNode>()
  /** Null until a block is fetched, which most commits do not need. */
  #blocks: Map<string, Uint8Array> | null = null
  #loadedBytes = 0

  constructor(
    readonly stored: StoredNodes,
    readonly recent: RecentNodes,
    readonly maxBytes: number,
  ) {}

  get(cid: string): MstNode | undefined {
    const loaded = this.#nodes.get(cid)
    if (loaded !== undefined) return loaded
    const node = this.recent.use(cid)
    // Hold it in this commit's map too, because the cache may drop it before the commit is built.
    if (node !== undefined) this.#nodes.set(cid, node)
    return node
  }

  set(cid: string, node: MstNode): void {
    this.#nodes.set(cid, node)
    keep(this.recent, cid, node)
  }

  block(cid: Cid): Uint8Array | null {
    const text = cid.toString()
    const block = this.#blocks?.get(text)
    if (block !== undefined) return block
    const node = this.get(text)
    return node === undefined ? null : node.block
  }

  #has(cid: string): boolean {
    return this.#blocks?.has(cid) === true || this.get(cid) !== undefined
  }

  /**
   * Throws `Malformed` if a node is missing, which means that the tree is damaged, and `LoadedTooMuch` if the nodes
   * have more bytes than a commit may read.
   */
  async fetch(cids: readonly Cid[]): Promise<void> {
    const blocks = (this.#blocks ??= new Map())
    for (let start = 0; start < cids.length; start += LOADED_AT_ONCE) {
      if (this.#loadedBytes > this.maxBytes) throw new LoadedTooMuch()
      for (const { cid, bytes } of await readBlocks(this.stored, cids.slice(start, start + LOADED_AT_ONCE))) {
        blocks.set(cid.toString(), bytes)
        this.#loadedBytes += bytes.length
      }
    }
    if (this.#loadedBytes > this.maxBytes) throw new LoadedTooMuch()
  }

  /** Load the nodes between the root and each key, and both neighbours of a key that is deleted. */
  async loadPaths(root: Cid, writes: readonly RecordWrite[]): Promise<void> {
    const [first] = writes
    if (writes.length === 1 && ((await this.#loadPathTo(root, first!.path)) || first!.action !== 'delete')) return
    let level = new Map([[root.toString(), { cid: root, writes }]])
    for (let layer: number | null = null; level.size > 0;) {
      const missing = [...level.values()].filter(({ cid }) => !this.#has(cid.toString()))
      if (missing.length > 0) await this.fetch(missing.map(({ cid }) => cid))
      const below = new Map<string, { cid: Cid; writes: RecordWrite[] }>()
      let nodeLayer = 0
      for (const [text, { cid, writes }] of level) {
        const node = this.get(text) ?? this.#decode(cid, layer)
        nodeLayer = node.layer
        for (const write of writes) {
          for (const child of childrenFor(node, write)) {
            if (child === null) continue
            const text = String(child)
            const known = below.get(text)
            if (known) known.writes.push(write)
            else below.set(text, { cid: child as Cid, writes: [write] })
          }
        }
      }
      layer = nodeLayer - 1
      level = below
    }
  }

  /**
   * Load the nodes between the root and a key. Returns false if a node has the key, or may have it. Large nodes are not
   * decoded yet, because the commit may turn out to be too large with them.
   */
  async #loadPathTo(root: Cid, key: string): Promise<boolean> {
    let layer: number | null = null
    for (let cid: Cid | null = root; cid !== null;) {
      const text: string = cid.toString()
      let node: MstNode | undefined = this.get(text)
      if (node === undefined) {
        await this.fetch([cid])
        const bytes: Uint8Array = this.#blocks!.get(text)!
        if (bytes.length > MAX_DECODED_BYTES) {
          layer = (layer ?? layerOfRoot(bytes)) - 1
          cid = subtreeTowards(bytes, key)
          if (cid === null) return false
          continue
        }
        node = this.#decode(cid, layer)
      }
      const i = node.lowerBound(key)
      if (node.keys[i] === key) return false
      cid = node.subtrees[i] as Cid | null
      layer = node.layer - 1
    }
    return true
  }

  #decode(cid: Cid, layer: number | null): MstNode {
    const text = cid.toString()
    const node = decoded(this.#blocks!.get(text)!, layer)
    this.set(text, node)
    return node
  }
}
