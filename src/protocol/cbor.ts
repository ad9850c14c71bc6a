/**
 * DRISL, the deterministic CBOR of atproto: one encoding for each value, one strict decoder.
 *
 * The encoder and the decoder are exact inverses: the encoder reproduces byte for byte whatever the decoder accepts. A
 * block that decodes is therefore in canonical form, and encoding a record again never changes its CID.
 *
 * For speed, both work on module state instead of objects, because every commit uses them. Neither calls other code,
 * which rules out re-entry.
 *
 * Source: DASL "DRISL"; IPLD "DAG-CBOR"; atproto "Data Model" (no floats, integers within 53 bits).
 */
import { Cid, cidAt, CID_BYTES_LENGTH, hasCidPrefix } from './cid.ts'
import { Malformed } from './malformed.ts'
import { readable } from './readable.ts'

export type Data = null | boolean | number | string | Uint8Array | Cid | Data[] | DataObject
export interface DataObject {
  [key: string]: Data
}

/** A byte string that writes itself directly into the output of the encoder. `decode` never returns one. */
export abstract class WrittenBytes {
  abstract readonly length: number
  /** Writes exactly `length` bytes. Must not encode anything. */
  abstract writeTo(target: Uint8Array, start: number): void
}

/** A value that the encoder accepts. */
export type Encodable = Data | WrittenBytes | Encodable[] | { [key: string]: Encodable }

/** How deep lists and objects may nest, in levels: far more than any lexicon needs, far less than the stack allows. */
export const MAX_DEPTH_LEVELS = 128

const major = { unsigned: 0x00, negative: 0x20, bytes: 0x40, text: 0x60, list: 0x80, map: 0xa0, tag: 0xc0 } as const
const simple = { false: 0xf4, true: 0xf5, null: 0xf6 } as const
/** The head of a link: tag 42, the head of a string of 37 bytes, and the zero byte that precedes a CID. */
const linkHead = Buffer.from([0xd8, 42, 0x58, CID_BYTES_LENGTH + 1, 0])
const LINK_LENGTH = linkHead.length + CID_BYTES_LENGTH
const TWO_32 = 0x1_0000_0000

// Encoding

const INITIAL_BYTES = 64 * 1024
const KEPT_BYTES = 1024 * 1024
const LONGEST_HEAD = 9

let out = Buffer.allocUnsafe(INITIAL_BYTES)
let end = 0

/** Encode one value. Throws `TypeError` for a value outside the data model, which is a bug of the caller. */
export function encode(value: Encodable): Uint8Array {
  return encodeSequence([value])
}

/** Encode values one after another, as in event frames. */
export function encodeSequence(values: readonly Encodable[]): Uint8Array {
  end = 0
  for (const value of values) writeValue(value, 0)
  const bytes = new Uint8Array(end)
  out.copy(bytes, 0, 0, end)
  if (out.length > KEPT_BYTES) out = Buffer.allocUnsafe(INITIAL_BYTES)
  return bytes
}

/**
 * Encode the head of a map with this many entries. The caller appends the entries, with the keys in the order of
 * `sortKeys`.
 */
export function mapHead(entries: number): Uint8Array {
  end = 0
  writeHead(major.map, entries)
  return new Uint8Array(out.subarray(0, end))
}

function reserve(length: number): void {
  if (end + length <= out.length) return
  const larger = Buffer.allocUnsafe(Math.max(out.length * 2, end + length))
  out.copy(larger, 0, 0, end)
  out = larger
}

function writeValue(value: Encodable, depth: number): void {
  switch (typeof value) {
    case 'string':
      return writeText(value)
    case 'number':
      if (!Number.isSafeInteger(value)) throw new TypeError(`Not a 53-bit integer: ${value}`)
      return value < 0 ? writeHead(major.negative, -1 - value) : writeHead(major.unsigned, value)
    case 'boolean':
      reserve(1)
      out[end++] = value ? simple.true : simple.false
      return
    case 'object':
      if (value === null) {
        reserve(1)
        out[end++] = simple.null
      } else if (value instanceof Cid) writeLink(value)
      else if (value instanceof Uint8Array) writeBytes(value)
      else if (value instanceof WrittenBytes) writeLater(value)
      else if (depth >= MAX_DEPTH_LEVELS) throw new TypeError(`Nested deeper than ${MAX_DEPTH_LEVELS} levels`)
      else if (Array.isArray(value)) {
        writeHead(major.list, value.length)
        for (const item of value) writeValue(item, depth + 1)
      } else writeMap(value, depth + 1)
      return
    default:
      throw new TypeError(`Not a value of the data model: ${typeof value}`)
  }
}

function writeHead(kind: number, argument: number): void {
  reserve(LONGEST_HEAD)
  if (argument < 24) out[end++] = kind | argument
  else if (argument < 0x100) {
    out[end++] = kind | 24
    out[end++] = argument
  } else if (argument < 0x1_0000) {
    out[end++] = kind | 25
    out[end++] = argument >>> 8
    out[end++] = argument
  } else if (argument < TWO_32) {
    out[end++] = kind | 26
    end = out.writeUInt32BE(argument, end)
  } else {
    out[end++] = kind | 27
    end = out.writeUInt32BE(Math.floor(argument / TWO_32), end)
    end = out.writeUInt32BE(argument % TWO_32, end)
  }
}

/** Up to this many bytes of ASCII, a loop is faster than calls into the runtime. */
const SHORT_TEXT_BYTES = 96

function writeText(text: string): void {
  const { length } = text
  if (length <= SHORT_TEXT_BYTES) {
    const start = end
    writeHead(major.text, length)
    reserve(length)
    let i = 0
    for (; i < length; i++) {
      const unit = text.charCodeAt(i)
      if (unit > 0x7f) break
      out[end + i] = unit
    }
    if (i === length) {
      end += length
      return
    }
    end = start
  }
  const byteLength = Buffer.byteLength(text)
  writeHead(major.text, byteLength)
  reserve(byteLength)
  end += out.write(text, end, byteLength, 'utf8')
}

function writeBytes(bytes: Uint8Array): void {
  writeHead(major.bytes, bytes.length)
  reserve(bytes.length)
  out.set(bytes, end)
  end += bytes.length
}

function writeLater(bytes: WrittenBytes): void {
  const { length } = bytes
  writeHead(major.bytes, length)
  reserve(length)
  bytes.writeTo(out, end)
  end += length
}

function writeLink(cid: Cid): void {
  reserve(LINK_LENGTH)
  out.set(linkHead, end)
  out.set(cid.bytes, end + linkHead.length)
  end += LINK_LENGTH
}

function writeMap(map: Record<string, Encodable>, depth: number): void {
  const keys = sortKeys(Object.keys(map))
  writeHead(major.map, keys.length)
  for (const key of keys) {
    writeText(key)
    writeValue(map[key] as Encodable, depth)
  }
}

const INSERTION_SORT_LIMIT = 24

/** Sorts keys in place in DAG-CBOR order: shorter keys first, then by bytes. Keys are few and mostly ASCII. */
export function sortKeys(keys: string[]): string[] {
  if (!keys.every(isAscii)) return keys.sort(compareKeys)
  if (keys.length > INSERTION_SORT_LIMIT) return keys.sort((a, b) => (comesBefore(a, b) ? -1 : 1))
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string
    let at = i - 1
    for (; at >= 0 && comesBefore(key, keys[at] as string); at--) keys[at + 1] = keys[at] as string
    keys[at + 1] = key
  }
  return keys
}

const comesBefore = (a: string, b: string): boolean => (a.length === b.length ? a < b : a.length < b.length)

function compareKeys(a: string, b: string): number {
  const [x, y] = [Buffer.from(a), Buffer.from(b)]
  return x.length - y.length || Buffer.compare(x, y)
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

// Decoding

const nothing: Buffer = Buffer.alloc(0)
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

let source = nothing
let at = 0

/** Decode exactly one value that fills `bytes`. Throws `Malformed`. The result shares no memory with `bytes`. */
export function decode(bytes: Uint8Array): Data {
  const value = readFirst(bytes)
  if (at < bytes.length) throw new Malformed('Bytes after the end of the value')
  return value
}

/** Decode the first of several values. Also returns the bytes that follow it. Throws `Malformed`. */
export function decodeFirst(bytes: Uint8Array): { value: Data; rest: Uint8Array } {
  const value = readFirst(bytes)
  return { value, rest: bytes.subarray(at) }
}

function readFirst(bytes: Uint8Array): Data {
  source = readable(bytes)
  at = 0
  try {
    return readValue(0)
  } finally {
    source = nothing
  }
}

/**
 * Returns how many lists, maps, links and byte strings a value has, and how many members its largest map has. Reads the
 * heads only, and throws `Malformed` only for a malformed or truncated number.
 */
export function extentOf(bytes: Uint8Array): { parts: number; members: number } {
  source = readable(bytes)
  at = 0
  let [parts, members] = [0, 0]
  try {
    while (at < source.length) {
      const head = source[at++] as number
      const kind = head & 0xe0
      const argument = readArgument(head)
      if (kind === major.bytes || kind === major.text) at += argument
      if (kind === major.map && argument > members) members = argument
      if (kind === major.bytes || kind === major.list || kind === major.map) parts++
    }
    return { parts, members }
  } finally {
    source = nothing
  }
}

function readValue(depth: number): Data {
  if (at >= source.length) throw new Malformed('Value ends early')
  const head = source[at++] as number
  switch (head & 0xe0) {
    case major.unsigned:
      return readArgument(head)
    case major.negative:
      return readNegative(head)
    case major.bytes:
      return readBytes(readLength(head, 1))
    case major.text:
      return readText(readLength(head, 1))
    case major.list:
      return readList(readLength(head, 1), depth + 1)
    case major.map:
      return readMap(readLength(head, 2), depth + 1)
    case major.tag:
      return readLink()
    default:
      return readSimple(head)
  }
}

/** Reads the number of a head byte. It must be in its shortest form and within 53 bits. */
function readArgument(head: number): number {
  const info = head & 0x1f
  if (info < 24) return info
  if (info > 27) throw new Malformed('Indefinite or reserved length')
  const width = 1 << (info - 24)
  if (at + width > source.length) throw new Malformed('Value ends early')
  let value = 0
  for (let i = 0; i < width; i++) value = value * 256 + (source[at++] as number)
  const shortestAbove = width === 1 ? 23 : width === 2 ? 0xff : width === 4 ? 0xffff : TWO_32 - 1
  if (value <= shortestAbove) throw new Malformed('Number not in its shortest form')
  if (value > Number.MAX_SAFE_INTEGER) throw new Malformed('Integer does not fit in 53 bits')
  return value
}

function readNegative(head: number): number {
  const value = -1 - readArgument(head)
  if (value < Number.MIN_SAFE_INTEGER) throw new Malformed('Integer does not fit in 53 bits')
  return value
}

/**
 * Reads a count of items, each at least `itemBytes` long. A count that the input cannot hold is refused before any
 * allocation.
 */
function readLength(head: number, itemBytes: 1 | 2): number {
  const length = readArgument(head)
  if (length * itemBytes > source.length - at) throw new Malformed('Value ends early')
  return length
}

function readBytes(length: number): Uint8Array {
  const start = at
  at += length
  // Not slice(), which makes a view if the input is a Buffer.
  return new Uint8Array(source.subarray(start, at))
}

function readText(length: number): string {
  const start = at
  at += length
  if (length <= SHORT_TEXT_BYTES) {
    let i = start
    while (i < at && (source[i] as number) <= 0x7f) i++
    if (i === at) return source.toString('latin1', start, at)
  }
  try {
    return utf8.decode(source.subarray(start, at))
  } catch {
    throw new Malformed('String is not valid UTF-8')
  }
}

/** Recent keys by a hash of their bytes. Records repeat a few names; a known name needs no new string. */
const KEY_SLOTS = 1024
const LONGEST_SHARED_KEY = 32
const sharedKeys = Array.from({ length: KEY_SLOTS }, () => '')

function readKey(length: number): string {
  if (length > LONGEST_SHARED_KEY) return readText(length)
  let hash = length
  for (let i = at; i < at + length; i++) hash = (Math.imul(hash, 31) + (source[i] as number)) | 0
  const slot = hash & (KEY_SLOTS - 1)
  const known = sharedKeys[slot] as string
  if (known.length === length) {
    let i = 0
    while (i < length && known.charCodeAt(i) === source[at + i]) i++
    if (i === length && length > 0) {
      at += length
      return known
    }
  }
  const key = readText(length)
  if (key.length === length) sharedKeys[slot] = key
  return key
}

function readList(length: number, depth: number): Data[] {
  checkDepth(depth)
  const list: Data[] = []
  for (let i = 0; i < length; i++) list.push(readValue(depth))
  return list
}

function readMap(length: number, depth: number): DataObject {
  checkDepth(depth)
  const map: DataObject = {}
  let previousStart = 0
  let previousEnd = 0
  for (let i = 0; i < length; i++) {
    if (at >= source.length) throw new Malformed('Value ends early')
    const head = source[at++] as number
    if ((head & 0xe0) !== major.text) throw new Malformed('Map key is not a string')
    const keyLength = readLength(head, 1)
    const start = at
    if (i > 0 && !ascends(previousStart, previousEnd, start, start + keyLength)) {
      throw new Malformed('Map keys out of order or repeated')
    }
    previousStart = start
    previousEnd = start + keyLength
    setOwn(map, readKey(keyLength), readValue(depth))
  }
  return map
}

/** Whether the key of the second range follows the key of the first: longer, or of equal length and larger bytes. */
function ascends(aStart: number, aEnd: number, bStart: number, bEnd: number): boolean {
  const length = aEnd - aStart
  if (length !== bEnd - bStart) return length < bEnd - bStart
  for (let i = 0; i < length; i++) {
    const difference = (source[aStart + i] as number) - (source[bStart + i] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** Set a property whose name may be `__proto__`; a plain assignment would set the prototype. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
  if (key === '__proto__')
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}

function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH_LEVELS) throw new Malformed(`Nested deeper than ${MAX_DEPTH_LEVELS} levels`)
}

function readLink(): Cid {
  const start = at - 1
  if (start + LINK_LENGTH > source.length) throw new Malformed('Value ends early')
  for (let i = 0; i < linkHead.length; i++)
    if (source[start + i] !== linkHead[i]) throw new Malformed('The only tag allowed is that of links')
  const cidStart = start + linkHead.length
  if (!hasCidPrefix(source, cidStart)) throw new Malformed('Link is not a CID of a known kind')
  at = cidStart + CID_BYTES_LENGTH
  return cidAt(source, cidStart)
}

function readSimple(head: number): boolean | null {
  switch (head) {
    case simple.false:
      return false
    case simple.true:
      return true
    case simple.null:
      return null
    default:
      throw new Malformed('Floats and other simple values are not data')
  }
}
