/**
 * One node of a Merkle search tree: its form in memory, and its canonical block.
 *
 * A node of layer L holds keys of height L in order, and subtrees of layer L-1 between them. A node that was read from
 * a block is never changed, because many trees may share it in a cache.
 *
 * Source: atproto "Repository", "MST Structure"; interop tests `mst/`.
 */
import { Cid, cidAt, CID_BYTES_LENGTH, hasCidPrefix } from './cid.ts'
import { Malformed } from './malformed.ts'
import { readable } from './readable.ts'

/** A subtree is a CID if it is stored as a block, or a node while the tree is being changed. */
export type Subtree = Cid | MstNode | null

export class MstNode {
  readonly layer: number
  readonly keys: string[]
  readonly values: Cid[]
  /** One more than `keys`: `subtrees[i]` is before `keys[i]`, and the last one is after the last key. */
  readonly subtrees: Subtree[]
  #block: Uint8Array | null = null

  constructor(layer: number, keys: string[], values: Cid[], subtrees: Subtree[]) {
    this.layer = layer
    this.keys = keys
    this.values = values
    this.subtrees = subtrees
  }

  /** The node's block, computed once. Only for a node whose subtrees are all CIDs and that no longer changes. */
  get block(): Uint8Array {
    return (this.#block ??= encodeNode(this))
  }

  isEmpty(): boolean {
    return this.keys.length === 0 && this.subtrees[0] === null
  }

  clone(): MstNode {
    return new MstNode(this.layer, this.keys.slice(), this.values.slice(), this.subtrees.slice())
  }

  /** Index of the first key that is not before `key`. */
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

/** Half the bits of SHA-256, the largest height of a key and depth of a tree. */
export const MAX_LAYERS = 128
/** The longest key, in bytes: collection, slash and record key. */
const MAX_KEY_BYTES = 1024

const digest = new Uint8Array(32)

/** The layer of a key: the number of leading zero bit pairs of its SHA-256. */
export function keyHeight(key: string): number {
  Bun.SHA256.hash(key, digest)
  let pairs = 0
  for (const byte of digest) {
    if (byte !== 0) return pairs + ((Math.clz32(byte) - 24) >>> 1)
    pairs += 4
  }
  return pairs
}

/** Length of the common prefix of two keys in bytes, which equal characters because keys are ASCII. */
export function sharedPrefix(a: string, b: string): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}

// The block of a node is DRISL of `{ e: [{ k, p, t, v }], l }`: heads and names at known places between links and keys.
// It is written and read here directly, which takes a quarter of the time of the general codec; nodes are most of a
// commit.

const nodeStart = Buffer.from([0xa2, 0x61, 0x65]) // a map of two, "e"
const entryStart = Buffer.from([0xa4, 0x61, 0x6b]) // a map of four, "k"
const nameP = Buffer.from([0x61, 0x70])
const nameT = Buffer.from([0x61, 0x74])
const nameV = Buffer.from([0x61, 0x76])
const nameL = Buffer.from([0x61, 0x6c])
const linkStart = Buffer.from([0xd8, 0x2a, 0x58, 0x25, 0x00])
const NO_LINK = 0xf6
const major = { number: 0x00, bytes: 0x40, list: 0x80 } as const
const LINK_BYTES = linkStart.length + CID_BYTES_LENGTH
/** Most bytes that heads, names and both links of an entry, or of a node, can take. */
const MAX_FRAME_BYTES = 2 * LINK_BYTES + 24

let out = Buffer.allocUnsafe(16 * 1024)
let end = 0

/** The block of a node whose subtrees are all CIDs. */
export function encodeNode(node: MstNode): Uint8Array {
  const { keys, values, subtrees } = node
  let bound = MAX_FRAME_BYTES
  for (const key of keys) bound += key.length + MAX_FRAME_BYTES
  if (bound > out.length) out = Buffer.allocUnsafe(bound * 2)
  end = 0
  write(nodeStart)
  writeHead(major.list, keys.length)
  let previous = ''
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    const prefix = sharedPrefix(previous, key)
    previous = key
    write(entryStart)
    writeHead(major.bytes, key.length - prefix)
    for (let at = prefix; at < key.length; at++) out[end++] = key.charCodeAt(at)
    write(nameP)
    writeHead(major.number, prefix)
    write(nameT)
    writeLink(subtrees[i + 1] as Cid | null)
    write(nameV)
    writeLink(values[i] as Cid)
  }
  write(nameL)
  writeLink(subtrees[0] as Cid | null)
  const block = new Uint8Array(end)
  out.copy(block, 0, 0, end)
  return block
}

function write(bytes: Buffer): void {
  for (let i = 0; i < bytes.length; i++) out[end++] = bytes[i] as number
}

/** A head with its number, which is below 65536: entries of a node, bytes of a key. */
function writeHead(kind: number, argument: number): void {
  if (argument < 24) out[end++] = kind | argument
  else if (argument < 0x100) {
    out[end++] = kind | 24
    out[end++] = argument
  } else {
    out[end++] = kind | 25
    out[end++] = argument >>> 8
    out[end++] = argument
  }
}

function writeLink(cid: Cid | null): void {
  if (cid === null) {
    out[end++] = NO_LINK
    return
  }
  write(linkStart)
  out.set(cid.bytes, end)
  end += CID_BYTES_LENGTH
}

/**
 * Read a node. Accepts canonical encodings only; checks that keys are ASCII, within bounds and in order, and that layer
 * 0 has no subtrees. Throws `Malformed`. `walkTree` checks that the keys belong to this layer and range; trees that
 * this server built do not need it.
 */
export function decodeNode(bytes: Uint8Array, layer: number): MstNode {
  return nodeAt(layer, readFields(bytes))
}

/**
 * Read a root. Its layer follows from its keys; if it has none, from `childLayer`, which returns the layer below.
 * Throws `Malformed`.
 */
export function decodeRoot(bytes: Uint8Array, childLayer: (child: Cid) => number): MstNode {
  const fields = readFields(bytes)
  const [key] = fields.keys
  const [child] = fields.subtrees
  if (key !== undefined) return nodeAt(keyHeight(key), fields)
  return nodeAt(child ? childLayer(child) + 1 : 0, fields)
}

interface Fields {
  keys: string[]
  values: Cid[]
  subtrees: (Cid | null)[]
}

function nodeAt(layer: number, { keys, values, subtrees }: Fields): MstNode {
  if (layer === 0 && subtrees.some((subtree) => subtree !== null))
    throw new Malformed('MST node below the lowest layer')
  if (layer > MAX_LAYERS) throw new Malformed(`MST deeper than ${MAX_LAYERS} layers`)
  return new MstNode(layer, keys, values, subtrees)
}

/**
 * Returns the subtree of a node in which a key would be; null if the node has the key, or no subtree there. Reads the
 * block without building its entries, of which a node may have tens of thousands. Throws `Malformed` for a block that
 * is cut off or is not a node; a stored node needs no further checks.
 */
export function subtreeTowards(bytes: Uint8Array, key: string): Cid | null {
  source = readable(bytes)
  at = 0
  expectBytes(nodeStart)
  const count = readHead(major.list)
  /**
   * Offset of the subtree after the last entry that precedes the key; null if no entry does: the leftmost subtree is at
   * the end of the block.
   */
  let place: number | null = null
  /** Length of the common prefix of the key and the last entry that precedes it. */
  let shared = 0
  let isPassed = false
  let isHere = false
  for (let i = 0; i < count; i++) {
    expectBytes(entryStart)
    const length = readHead(major.bytes)
    const start = at
    at += length
    expectBytes(nameP)
    const prefix = readHead(major.number)
    expectBytes(nameT)
    const subtreeAt = at
    skipLink()
    expectBytes(nameV)
    skipLink()
    // An entry that shares a longer prefix with its predecessor than the key does also precedes the key; one that
    // shares a shorter prefix follows it.
    if (isPassed || prefix < shared) {
      isPassed = true
      continue
    }
    if (prefix === shared) {
      let end = 0
      while (end < length && source[start + end] === key.charCodeAt(shared + end)) end++
      const hasEnded = shared + end === key.length
      isHere = end === length && hasEnded
      isPassed =
        isHere || (end < length && (hasEnded || (source[start + end] as number) > key.charCodeAt(shared + end)))
      if (isPassed) continue
      shared += end
    }
    place = subtreeAt
  }
  expectBytes(nameL)
  const firstAt = at
  skipLink()
  if (at !== source.length) throw new Malformed('Bytes after the end of an MST node')
  if (isHere) return null
  at = place ?? firstAt
  return readLink()
}

/** Returns the layer of a root by its first key; 0 if it has none. Throws `Malformed`. */
export function layerOfRoot(bytes: Uint8Array): number {
  source = readable(bytes)
  at = 0
  expectBytes(nodeStart)
  if (readHead(major.list) === 0) return 0
  expectBytes(entryStart)
  return keyHeight(readSuffix())
}

let source: Buffer = Buffer.alloc(0)
let at = 0

function readFields(bytes: Uint8Array): Fields {
  source = readable(bytes)
  at = 0
  const keys: string[] = []
  const values: Cid[] = []
  const subtrees: (Cid | null)[] = [null]
  expectBytes(nodeStart)
  const count = readHead(major.list)
  let previous = ''
  for (let i = 0; i < count; i++) {
    expectBytes(entryStart)
    const suffix = readSuffix()
    expectBytes(nameP)
    const prefix = readHead(major.number)
    if (prefix > previous.length || prefix + suffix.length > MAX_KEY_BYTES)
      throw new Malformed(`MST key is longer than ${MAX_KEY_BYTES} bytes`)
    if (prefix < previous.length && suffix.charCodeAt(0) === previous.charCodeAt(prefix))
      throw new Malformed('MST key repeats part of the prefix that it shares with the previous key')
    const key = prefix === 0 ? suffix : previous.slice(0, prefix) + suffix
    if (key <= previous) throw new Malformed('MST keys out of order')
    keys.push(key)
    previous = key
    expectBytes(nameT)
    subtrees.push(readLink())
    expectBytes(nameV)
    const value = readLink()
    if (value === null) throw new Malformed('MST entry has no value')
    values.push(value)
  }
  expectBytes(nameL)
  subtrees[0] = readLink()
  if (at !== source.length) throw new Malformed('Bytes after the end of an MST node')
  return { keys, values, subtrees }
}

/** Also fails at the end of the input, where no bytes are left to match. */
function expectBytes(bytes: Buffer): void {
  for (let i = 0; i < bytes.length; i++)
    if (source[at++] !== bytes[i]) throw new Malformed('Not an MST node in canonical form')
}

function readHead(kind: number): number {
  const head = source[at++] ?? 0
  if ((head & 0xe0) !== kind) throw new Malformed('MST node has a field of the wrong type')
  const info = head & 0x1f
  if (info < 24) return info
  const value = info === 24 ? (source[at++] ?? 0) : info === 25 ? ((source[at++] ?? 0) << 8) | (source[at++] ?? 0) : -1
  if (value < (info === 24 ? 24 : 0x100))
    throw new Malformed('MST node has a number not in its shortest form, or too large')
  return value
}

function readSuffix(): string {
  const length = readHead(major.bytes)
  const start = at
  at += length
  for (let i = start; i < at; i++) if ((source[i] ?? 0x80) > 0x7f) throw new Malformed('MST key is not ASCII')
  return source.toString('latin1', start, at)
}

function skipLink(): void {
  at += source[at] === NO_LINK ? 1 : LINK_BYTES
}

function readLink(): Cid | null {
  if (source[at] === NO_LINK) {
    at++
    return null
  }
  expectBytes(linkStart)
  if (!hasCidPrefix(source, at)) throw new Malformed('MST link is not a CID of a known kind')
  const start = at
  at += CID_BYTES_LENGTH
  if (at > source.length) throw new Malformed('MST node ends early')
  return cidAt(source, start)
}
