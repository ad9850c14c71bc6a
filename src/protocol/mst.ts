/**
 * Merkle search trees. A change only touches the few nodes that it affects.
 *
 * A tree reads a node when it first needs it, copies it before the first change, and writes blocks only in `flush`. The
 * root depends on the set of entries alone, not on their history. A flush therefore knows exactly which blocks the
 * changes created and which they made unreachable.
 *
 * No two nodes of a tree are equal, because each contains its first key or leads to a node that does. A node that was
 * opened for change and not written again is therefore no longer in the tree.
 *
 * Source: atproto "Repository", "MST Structure" and "Repository Diffs".
 */
import { SmallMap } from '../base/small-map.ts'
import { type Block } from './car.ts'
import { type Cid, cidOfCbor } from './cid.ts'
import { Malformed } from './malformed.ts'
import {
  decodeNode,
  decodeRoot,
  emptyNode,
  encodeNode,
  keyHeight,
  MAX_LAYERS,
  MstNode,
  type Subtree,
} from './mst-node.ts'

/** Reads a block by CID; returns null if there is none. */
export type BlockReader = (cid: Cid) => Uint8Array | null

/** Decoded nodes by CID text. Trees may share a cache, because its nodes are never changed. A `Map` suffices. */
export interface NodeCache {
  get(cid: string): MstNode | undefined
  set(cid: string, node: MstNode): unknown
}

/** Thrown if a block of the tree is missing. */
export class MissingBlock extends Malformed {
  readonly cid: Cid
  constructor(cid: Cid) {
    super(`Block ${cid} is missing`)
    this.cid = cid
  }
}

export interface Flush {
  root: Cid
  /** Node blocks that were not in the tree at the last flush, children before parents. */
  created: Block[]
  /** CIDs of nodes that were in the tree at the last flush and no longer are. */
  removed: Cid[]
}

export class Mst {
  readonly #read: BlockReader
  readonly #cache: NodeCache
  #root: Cid | MstNode
  /** Nodes of the last flushed tree that have been opened for change since. */
  readonly #opened = new SmallMap<Cid>()

  /** The tree with this root, or a new one if `root` is null. */
  constructor(root: Cid | null, read: BlockReader, cache: NodeCache = new Map()) {
    this.#read = read
    this.#cache = cache
    this.#root = root ?? emptyNode(0)
  }

  get(key: string): Cid | null {
    for (let node: MstNode | null = this.#loadRoot(); node !== null;) {
      const i = node.lowerBound(key)
      if (node.keys[i] === key) return node.values[i] as Cid
      node = this.#child(node, i)
    }
    return null
  }

  /** Set the value of a key. Returns the previous value of the key, or null if it had none. */
  put(key: string, value: Cid): Cid | null {
    const previous = this.get(key)
    if (previous?.equals(value)) return previous
    const height = keyHeight(key)
    const top = this.#loadRoot()
    let root: Cid | MstNode = this.#root
    let { layer } = top
    if (top.isEmpty()) {
      this.#open(root)
      root = emptyNode(height)
      layer = height
    }
    for (; layer < height; layer++) root = new MstNode(layer + 1, [], [], [root])
    this.#root = this.#put(root, layer, key, value, height)
    return previous
  }

  #put(subtree: Cid | MstNode, layer: number, key: string, value: Cid, height: number): MstNode {
    const node = this.#edit(subtree, layer)
    const i = node.lowerBound(key)
    if (layer > height) {
      node.subtrees[i] = this.#put(node.subtrees[i] ?? emptyNode(layer - 1), layer - 1, key, value, height)
    } else if (node.keys[i] === key) {
      node.values[i] = value
    } else {
      const [before, after] = this.#split(node.subtrees[i] as Subtree, layer - 1, key)
      node.keys.splice(i, 0, key)
      node.values.splice(i, 0, value)
      node.subtrees.splice(i, 1, before, after)
    }
    return node
  }

  /** Split a subtree in two around a key that it does not contain. A side that stays whole keeps its block. */
  #split(subtree: Subtree, layer: number, key: string): [Subtree, Subtree] {
    if (subtree === null) return [null, null]
    const node = this.#load(subtree, layer)
    const i = node.lowerBound(key)
    const [before, after] = this.#split(node.subtrees[i] as Subtree, layer - 1, key)
    if (i === 0 && before === null) return [null, subtree]
    if (i === node.keys.length && after === null) return [subtree, null]
    this.#open(subtree)
    return [
      new MstNode(layer, node.keys.slice(0, i), node.values.slice(0, i), [...node.subtrees.slice(0, i), before]),
      new MstNode(layer, node.keys.slice(i), node.values.slice(i), [after, ...node.subtrees.slice(i + 1)]),
    ]
  }

  /** Delete a key. Returns its value, or null if the key was not in the tree. */
  delete(key: string): Cid | null {
    const previous = this.get(key)
    if (previous === null) return null
    const root = this.#delete(this.#root, this.#loadRoot().layer, key, keyHeight(key))
    this.#root = this.#trim(root)
    return previous
  }

  #delete(subtree: Cid | MstNode, layer: number, key: string, height: number): MstNode | null {
    const node = this.#edit(subtree, layer)
    const i = node.lowerBound(key)
    if (layer > height) {
      node.subtrees[i] = this.#delete(node.subtrees[i] as Cid | MstNode, layer - 1, key, height)
    } else {
      const merged = this.#merge(node.subtrees[i] as Subtree, node.subtrees[i + 1] as Subtree, layer - 1)
      node.keys.splice(i, 1)
      node.values.splice(i, 1)
      node.subtrees.splice(i, 2, merged)
    }
    return node.isEmpty() ? null : node
  }

  #merge(left: Subtree, right: Subtree, layer: number): Subtree {
    if (left === null) return right
    if (right === null) return left
    this.#open(left)
    this.#open(right)
    const [a, b] = [this.#load(left, layer), this.#load(right, layer)]
    const middle = this.#merge(a.subtrees.at(-1) as Subtree, b.subtrees[0] as Subtree, layer - 1)
    return new MstNode(
      layer,
      [...a.keys, ...b.keys],
      [...a.values, ...b.values],
      [...a.subtrees.slice(0, -1), middle, ...b.subtrees.slice(1)],
    )
  }

  /** A root must contain a key unless the tree is empty: descend to the first node that does. */
  #trim(top: MstNode | null): Cid | MstNode {
    if (top === null) return emptyNode(0)
    let root: Cid | MstNode = top
    for (let node = top; node.keys.length === 0; node = this.#load(root, node.layer - 1)) {
      this.#open(root)
      root = node.subtrees[0] as Cid | MstNode
    }
    return root
  }

  /** Write every changed node as a block. The tree may be changed further afterwards. */
  flush(): Flush {
    const created: Block[] = []
    const root = this.#flush(this.#root, created)
    this.#root = root
    const removed = this.#opened.values()
    this.#opened.clear()
    return { root, created, removed }
  }

  #flush(subtree: Cid | MstNode, created: Block[]): Cid {
    if (!(subtree instanceof MstNode)) return subtree
    const { subtrees } = subtree
    for (let i = 0; i < subtrees.length; i++) {
      const child = subtrees[i]
      if (child instanceof MstNode) subtrees[i] = this.#flush(child, created)
    }
    const bytes = encodeNode(subtree)
    const cid = cidOfCbor(bytes)
    const text = cid.toString()
    this.#cache.set(text, subtree)
    if (!this.#opened.delete(text)) created.push({ cid, bytes })
    return cid
  }

  /** The nodes from the root to a key, or to where it would be. They prove that the key is in the tree, or is not. */
  path(key: string): Cid[] {
    return this.#descend(key).path
  }

  /**
   * The nodes that cover a key and its neighbours, or its absence, root first. They must accompany a commit, which lets
   * readers invert its operations without the rest of the tree. Call it only after a flush.
   */
  coveringProof(key: string): Cid[] {
    const { path, node, i } = this.#descend(key)
    if (node.keys[i] !== key) return path
    this.#edge(node.subtrees[i] as Subtree, node.layer - 1, 'last', path)
    this.#edge(node.subtrees[i + 1] as Subtree, node.layer - 1, 'first', path)
    return path
  }

  /** Descend to a key. Returns the blocks on the way, the last node, and the index in it. */
  #descend(key: string): { path: Cid[]; node: MstNode; i: number } {
    const path = [this.#root as Cid]
    let node = this.#loadRoot()
    for (;;) {
      const i = node.lowerBound(key)
      const child = node.subtrees[i] as Subtree
      if (node.keys[i] === key || child === null) return { path, node, i }
      path.push(child as Cid)
      node = this.#load(child, node.layer - 1)
    }
  }

  /** Add the blocks along one edge of a subtree. */
  #edge(from: Subtree, fromLayer: number, side: 'first' | 'last', path: Cid[]): void {
    for (let subtree = from, layer = fromLayer; subtree !== null; layer--) {
      path.push(subtree as Cid)
      const { subtrees } = this.#load(subtree, layer)
      subtree = subtrees[side === 'first' ? 0 : subtrees.length - 1] as Subtree
    }
  }

  #loadRoot(): MstNode {
    return this.#root instanceof MstNode ? this.#root : this.#loadUnknown(this.#root, 0)
  }

  /** Load a node whose layer is only known from its keys, or from those below it. */
  #loadUnknown(cid: Cid, level: number): MstNode {
    if (level > MAX_LAYERS) throw new Malformed(`MST deeper than ${MAX_LAYERS} layers`)
    return this.#cached(cid, (bytes) => decodeRoot(bytes, (child) => this.#loadUnknown(child, level + 1).layer))
  }

  #load(subtree: Cid | MstNode, layer: number): MstNode {
    return subtree instanceof MstNode ? subtree : this.#cached(subtree, (bytes) => decodeNode(bytes, layer))
  }

  #cached(cid: Cid, decodeBytes: (bytes: Uint8Array) => MstNode): MstNode {
    const text = cid.toString()
    const known = this.#cache.get(text)
    if (known !== undefined) return known
    const bytes = this.#read(cid)
    if (bytes === null) throw new MissingBlock(cid)
    const node = decodeBytes(bytes)
    this.#cache.set(text, node)
    return node
  }

  #child(node: MstNode, i: number): MstNode | null {
    const subtree = node.subtrees[i] as Subtree
    return subtree === null ? null : this.#load(subtree, node.layer - 1)
  }

  /** Returns a node that may be changed: the node itself if it has no block yet, otherwise a copy. */
  #edit(subtree: Cid | MstNode, layer: number): MstNode {
    if (subtree instanceof MstNode) return subtree
    this.#open(subtree)
    return this.#load(subtree, layer).clone()
  }

  #open(subtree: Cid | MstNode): void {
    if (!(subtree instanceof MstNode)) this.#opened.set(subtree.toString(), subtree)
  }
}

/**
 * Build a tree from all its entries, in order and without repetition. Each node is passed on as a block. Holds one open
 * node per layer. Returns the root.
 */
export function buildTree(entries: Iterable<readonly [key: string, value: Cid]>, emit: (block: Block) => void): Cid {
  const open: (MstNode | undefined)[] = []
  const write = (node: MstNode): Cid => {
    const bytes = encodeNode(node)
    const cid = cidOfCbor(bytes)
    emit({ cid, bytes })
    return cid
  }
  /** Write the open nodes below a layer. Each becomes the subtree after the last key of the node above. */
  const closeBelow = (layer: number): Cid | null => {
    let below: Cid | null = null
    for (let i = 0; i < layer; i++) {
      const node: MstNode | undefined = open[i] ?? (below === null ? undefined : emptyNode(i))
      if (node === undefined) continue
      node.subtrees[node.keys.length] = below
      below = write(node)
      open[i] = undefined
    }
    return below
  }
  let previous: string | null = null
  for (const [key, value] of entries) {
    if (previous !== null && key <= previous) throw new Malformed(`Keys out of order: ${key}`)
    previous = key
    const layer = keyHeight(key)
    const below = closeBelow(layer)
    const node = (open[layer] ??= emptyNode(layer))
    node.subtrees[node.keys.length] = below
    node.keys.push(key)
    node.values.push(value)
    node.subtrees.push(null)
  }
  return closeBelow(open.length) ?? write(emptyNode(0))
}

/** Reads a block asynchronously; resolves to null if there is none. */
export type BlockFetcher = (cid: Cid) => Promise<Uint8Array | null>

/** A part of a verified tree. */
export interface TreePage {
  nodes: Block[]
  /** Entries in key order, within a page and across pages. */
  entries: [key: string, value: Cid][]
}

/** Most entries of an untrusted tree. */
const MAX_TREE_ENTRIES = 10_000_000
/** Most nodes and entries in a page. */
const PAGE_ITEMS = 500

/** A collection, a slash and a record key, in the characters that keys may have. */
const keyPattern = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9_~.:-]+$/

/** A node on the current path of a walk. An even step leads into a subtree, an odd one past a key. */
interface OpenNode {
  node: MstNode
  step: number
}

/**
 * Walk an untrusted tree in key order and check all of it: every node is canonical, every key is well formed, in order
 * and on the layer of its hash; no node is empty or missing. Holds the nodes of one path. Throws `Malformed`, or its
 * subclass `MissingBlock` if a block is missing.
 *
 * A page ends with an entry, after which another walk may continue: `after` leaves out the entries up to that key, and
 * the nodes that were passed on with them.
 */
export async function* walkTree(root: Cid, fetch: BlockFetcher, after = ''): AsyncGenerator<TreePage> {
  const path: OpenNode[] = []
  let page: TreePage = { nodes: [], entries: [] }
  let isSeeking = after !== ''
  const enter = async (cid: Cid, layer: number | null): Promise<void> => {
    const bytes = await fetch(cid)
    if (bytes === null) throw new MissingBlock(cid)
    const node = layer === null ? decodeRoot(bytes, refuseKeyless) : decodeNode(bytes, layer)
    if (layer !== null && node.isEmpty()) throw new Malformed('MST node is empty')
    if (!isSeeking) {
      page.nodes.push({ cid, bytes })
      path.push({ node, step: 0 })
      return
    }
    const i = node.lowerBound(after)
    const isHere = node.keys[i] === after
    isSeeking = !isHere && node.subtrees[i] !== null
    path.push({ node, step: 2 * (isHere ? i + 1 : i) })
  }
  await enter(root, null)
  let previous = after
  let count = 0
  for (let open = path.at(-1); open !== undefined; open = path.at(-1)) {
    const { node } = open
    const i = open.step >>> 1
    if (open.step++ % 2 === 0) {
      const child = node.subtrees[i] as Cid | null
      if (child !== null) await enter(child, node.layer - 1)
    } else if (i < node.keys.length) {
      const key = node.keys[i] as string
      checkKey(key, previous, node.layer)
      page.entries.push([key, node.values[i] as Cid])
      previous = key
      if (++count > MAX_TREE_ENTRIES) throw new Malformed(`MST has more than ${MAX_TREE_ENTRIES} entries`)
      if (page.nodes.length + page.entries.length < PAGE_ITEMS) continue
      yield page
      page = { nodes: [], entries: [] }
    } else {
      path.pop()
    }
  }
  yield page
}

const refuseKeyless = (): never => {
  throw new Malformed('MST root holds no key')
}

/** `after` is the key before it in the whole tree. */
function checkKey(key: string, after: string, layer: number): void {
  if (!keyPattern.test(key)) throw new Malformed(`MST key is not a record path: ${key}`)
  if (key <= after) throw new Malformed('MST keys out of order')
  if (keyHeight(key) !== layer) throw new Malformed(`MST key on the wrong layer: ${key}`)
}
