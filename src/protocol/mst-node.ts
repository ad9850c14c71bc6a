/**
 * One node of a Merkle search tree: its form in memory, and its canonical block.
 *
 * A node of layer L holds keys of height L in order, and between them subtrees of layer L-1. A node read from a block
 * is never changed; it may sit in a cache shared by many trees.
 *
 * Source: atproto "Repository", "MST Structure"; interop tests `mst/`.
 */
import { type Data, type DataObject, decode, encode } from './cbor.ts'
import { Cid } from './cid.ts'
import { Malformed } from './malformed.ts'

/** A subtree is its CID once it is a block, and a node while a tree is being changed. */
export type Subtree = Cid | MstNode | null

export class MstNode {
  readonly layer: number
  readonly keys: string[]
  readonly values: Cid[]
  /** One more than keys: `subtrees[i]` lies before `keys[i]`, the last one after the last key. */
  readonly subtrees: Subtree[]

  constructor(layer: number, keys: string[], values: Cid[], subtrees: Subtree[]) {
    this.layer = layer
    this.keys = keys
    this.values = values
    this.subtrees = subtrees
  }

  isEmpty(): boolean {
    return this.keys.length === 0 && this.subtrees[0] === null
  }

  clone(): MstNode {
    return new MstNode(this.layer, this.keys.slice(), this.values.slice(), this.subtrees.slice())
  }

  /** The place of the first key that is not before `key`. */
  lowerBound(key: string): number {
    let low = 0
    let high = this.keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.keys[middle] as string) < key) low = middle + 1
      else high = middle
    }
    return low
  }
}

export const emptyNode = (layer: number): MstNode => new MstNode(layer, [], [], [null])

/** Half the bits of SHA-256: no key is higher, so no tree is deeper. */
export const maxLayers = 128
/** The longest key, in bytes: collection, slash and record key. */
export const maxKeyBytes = 1024

const digest = new Uint8Array(32)

/** The layer of a key: how many zero pairs of bits its SHA-256 begins with. */
export function keyHeight(key: string): number {
  Bun.SHA256.hash(key, digest)
  let pairs = 0
  for (const byte of digest) {
    if (byte !== 0) return pairs + ((Math.clz32(byte) - 24) >>> 1)
    pairs += 4
  }
  return pairs
}

/** How many bytes two keys share at their start. Keys are ASCII, so a byte is a character. */
export function sharedPrefix(a: string, b: string): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

/** The block of a node whose subtrees are all CIDs. */
export function encodeNode(node: MstNode): Uint8Array {
  let previous = ''
  const entries = node.keys.map((key, i): DataObject => {
    const prefix = sharedPrefix(previous, key)
    previous = key
    return {
      k: Buffer.from(prefix === 0 ? key : key.slice(prefix), 'latin1'),
      p: prefix,
      t: node.subtrees[i + 1] as Cid | null,
      v: node.values[i] as Cid,
    }
  })
  return encode({ e: entries, l: node.subtrees[0] as Cid | null })
}

/**
 * Read a node. Checks the structure: fields, ASCII keys within bounds and in order, no subtrees below layer 0. Throws
 * `Malformed`. Whether the keys belong to this layer and range is for `verifyTree`; for a tree of ours it is known.
 */
export function decodeNode(bytes: Uint8Array, layer: number): MstNode {
  return nodeFromFields(readFields(bytes), layer)
}

/** Read a root, whose layer is that of its keys; `childLayer` is asked when it has none. Throws `Malformed`. */
export function decodeRoot(bytes: Uint8Array, childLayer: (child: Cid) => number): MstNode {
  const fields = readFields(bytes)
  const first = fields.e[0]
  if (first !== undefined) return nodeFromFields(fields, keyHeight(entryKey(first, '')))
  return nodeFromFields(fields, fields.l === null ? 0 : childLayer(fields.l) + 1)
}

interface NodeFields {
  l: Cid | null
  e: DataObject[]
}

function readFields(bytes: Uint8Array): NodeFields {
  const data = decode(bytes)
  if (!hasFields(data, 2)) throw new Malformed('MST node is not a map of two fields')
  const { l, e } = data
  if (!isLink(l) || !Array.isArray(e) || !e.every((entry) => hasFields(entry, 4))) throw new Malformed('MST node has wrong fields')
  return { l, e: e as DataObject[] }
}

function nodeFromFields({ l, e }: NodeFields, layer: number): MstNode {
  const keys: string[] = []
  const values: Cid[] = []
  const subtrees: Subtree[] = [l]
  let previous = ''
  for (const entry of e) {
    const key = entryKey(entry, previous)
    if (keys.length > 0 && key <= previous) throw new Malformed('MST keys out of order')
    const { v, t } = entry
    if (!(v instanceof Cid) || !isLink(t)) throw new Malformed('MST entry has wrong fields')
    keys.push(key)
    values.push(v)
    subtrees.push(t)
    previous = key
  }
  if (layer === 0 && subtrees.some((subtree) => subtree !== null)) throw new Malformed('MST node below the lowest layer')
  if (layer > maxLayers) throw new Malformed(`MST deeper than ${maxLayers} layers`)
  return new MstNode(layer, keys, values, subtrees)
}

function entryKey({ p, k }: DataObject, previous: string): string {
  if (typeof p !== 'number' || p < 0 || p > previous.length || !(k instanceof Uint8Array)) throw new Malformed('MST entry has wrong fields')
  if (p + k.length > maxKeyBytes || k.length === 0) throw new Malformed(`MST key must have 1 to ${maxKeyBytes} bytes`)
  let suffix = ''
  for (const byte of k) {
    if (byte > 0x7f) throw new Malformed('MST key is not ASCII')
    suffix += String.fromCharCode(byte)
  }
  return p === 0 ? suffix : previous.slice(0, p) + suffix
}

function hasFields(data: Data | undefined, count: number): data is DataObject {
  return typeof data === 'object' && data !== null && Object.keys(data).length === count
}

const isLink = (data: Data | undefined): data is Cid | null => data === null || data instanceof Cid
