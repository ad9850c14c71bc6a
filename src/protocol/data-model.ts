/**
 * The atproto data model: converts lexicon JSON (`$link`, `$bytes`) to values and back, and finds the blobs of a value.
 *
 * A record is converted once. The same value is validated (`lexicons/`), searched for blobs and encoded.
 *
 * Source: atproto "Data Model"; interop tests `data-model/`.
 */
import { unpaddedBase64 } from './base64url.ts'
import { extentOf, type Data, type DataObject, MAX_DEPTH_LEVELS, setOwn } from './cbor.ts'
import { Cid, codecs, parseCid } from './cid.ts'
import { Malformed } from './malformed.ts'
import { pathSegment } from './value-path.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface BlobReference {
  $type: 'blob'
  ref: Cid
  mimeType: string
  /** In bytes. */
  size: number
}

/**
 * Most members of one object: with more, sorting, encoding and decoding it takes far longer than other values of its
 * size.
 */
const MAX_MEMBERS = 10_000

/**
 * Convert parsed JSON. Throws `Malformed` for a value that would not survive storage unchanged. The exception: a lone
 * surrogate in a text becomes U+FFFD, because clients leave lone surrogates when they truncate a text.
 */
export function jsonToData(json: unknown): Data {
  return convert(json, 0)
}

/** Convert parsed JSON that must be an object, as every record is. Throws `Malformed`. */
export function jsonToObject(json: unknown): DataObject {
  const data = convert(json, 0)
  if (!isObject(data)) throw new Malformed('Expected an object')
  return data
}

function convert(json: unknown, depth: number): Data {
  switch (typeof json) {
    case 'string':
    case 'boolean':
      return json
    case 'number':
      if (!Number.isSafeInteger(json)) throw new Malformed(`Numbers must be integers of at most 53 bits, got ${json}`)
      return json === 0 ? 0 : json // -0 has no encoding of its own
    case 'object':
      if (json === null) return null
      if (depth >= MAX_DEPTH_LEVELS) throw new Malformed(`Nested deeper than ${MAX_DEPTH_LEVELS} levels`)
      if (!Array.isArray(json)) return convertObject(json as Record<string, unknown>, depth + 1)
      return convertArray(json, depth + 1)
    default:
      throw new Malformed(`Not JSON: ${typeof json}`)
  }
}

function convertArray(json: readonly unknown[], depth: number): Data[] {
  const array: Data[] = []
  try {
    for (const item of json) array.push(convert(item, depth))
  } catch (error) {
    throw within(array.length, error)
  }
  return array
}

/**
 * Programs in JavaScript lose it or refuse all that it is in: the libraries of AT Protocol do not read a page of
 * records if one of them has it.
 */
export const UNREADABLE_NAME = '__proto__'

function convertObject(json: Record<string, unknown>, depth: number): Data {
  if (Object.hasOwn(json, '$link')) return convertLink(json)
  if (Object.hasOwn(json, '$bytes')) return convertBytes(json)
  const object: DataObject = {}
  let name = ''
  const keys = Object.keys(json)
  if (keys.length > MAX_MEMBERS) throw new Malformed(`An object has more than ${MAX_MEMBERS} members`)
  try {
    for (const key of keys) {
      name = key
      // Two names that differ only in lone surrogates would become the same name.
      if (!key.isWellFormed()) throw new Malformed('Names must be well-formed Unicode')
      if (key === UNREADABLE_NAME) throw new Malformed(`Invalid key: ${key}`)
      object[key] = convert(json[key], depth)
    }
  } catch (error) {
    throw within(name, error)
  }
  if (!Object.hasOwn(object, '$type')) return object
  if (typeof object['$type'] !== 'string' || object['$type'] === '')
    throw new Malformed('$type must be a non-empty string')
  return object['$type'] === 'blob' ? convertBlob(object) : object
}

/** Most lists, objects, links and byte strings in a record: each takes far longer to process than its bytes alone. */
const MAX_PARTS = 100_000

/**
 * Returns, in words, which bound of a record the block exceeds, or null. Does not decode it. Throws `Malformed` for
 * some of what `decode` refuses.
 */
export function excessOf(block: Uint8Array): string | null {
  const { parts, members } = extentOf(block)
  if (parts > MAX_PARTS) return `more than ${MAX_PARTS} lists, objects, links and byte strings`
  return members > MAX_MEMBERS ? `an object with more than ${MAX_MEMBERS} members` : null
}

/** Extends the path of a `Malformed` error by the part in which it occurred. */
function within(part: string | number, error: unknown): unknown {
  if (error instanceof Malformed) error.path = pathSegment(part) + error.path
  return error
}

function convertLink(json: Record<string, unknown>): Cid {
  const text = soleValue(json, '$link')
  const cid = parseCid(text)
  if (cid === null) throw new Malformed(`$link is not a CID of a known kind: ${text.slice(0, 80)}`)
  return cid
}

function convertBytes(json: Record<string, unknown>): Uint8Array {
  const text = soleValue(json, '$bytes')
  if (!isBase64(text)) throw new Malformed('$bytes is not base64')
  return new Uint8Array(Buffer.from(text, 'base64'))
}

function soleValue(json: Record<string, unknown>, key: '$link' | '$bytes'): string {
  const value = json[key]
  if (typeof value !== 'string') throw new Malformed(`${key} must be a string`)
  if (Object.keys(json).length !== 1) throw new Malformed(`${key} must be the only member of its object`)
  return value
}

/** RFC 4648 section 4, padded or not. */
function isBase64(text: string): boolean {
  const digits = /^[A-Za-z0-9+/]*/.exec(text)?.[0].length ?? 0
  const padding = text.length - digits
  if (digits % 4 === 1) return false
  return padding === 0 || (text.length % 4 === 0 && padding <= 2 && text.endsWith('='.repeat(padding)))
}

const BLOB_KEYS = 4

function convertBlob(object: DataObject): DataObject {
  const { ref, mimeType, size } = object
  const wellFormed =
    ref instanceof Cid &&
    ref.code === codecs.raw &&
    typeof mimeType === 'string' &&
    mimeType.includes('/') &&
    typeof size === 'number' &&
    size >= 0 &&
    Object.keys(object).length === BLOB_KEYS
  if (!wellFormed) throw new Malformed('A blob needs ref (the link of a raw CID), mimeType and size, and nothing else')
  return object
}

/** The JSON form of a value, with `$link` and `$bytes` (unpadded base64). */
export function dataToJson(data: Data): Json {
  if (typeof data !== 'object' || data === null) return data
  if (data instanceof Cid) return data.toJSON()
  if (data instanceof Uint8Array) return { $bytes: unpaddedBase64(data) }
  if (Array.isArray(data)) return data.map(dataToJson)
  const json: Record<string, Json> = {}
  for (const key of Object.keys(data)) setOwn(json, key, dataToJson(data[key] as Data))
  return json
}

/**
 * Returns the blobs that a value refers to, in order and with repetitions, and the CIDs of legacy references as text.
 */
export function findBlobs(data: Data): { blobs: BlobReference[]; legacy: string[] } {
  const found = { blobs: [] as BlobReference[], legacy: [] as string[] }
  collectBlobs(data, found)
  return found
}

/** The result for most values. */
const noCids: readonly string[] = []

/** The CIDs of all blobs that a value refers to, in either form, each once. */
export function blobCids(data: Data): readonly string[] {
  const { blobs, legacy } = findBlobs(data)
  if (blobs.length + legacy.length === 0) return noCids
  return [...new Set([...blobs.map(({ ref }) => ref.toString()), ...legacy])]
}

function collectBlobs(data: Data, found: { blobs: BlobReference[]; legacy: string[] }): void {
  if (Array.isArray(data)) {
    for (const item of data) collectBlobs(item, found)
  } else if (isObject(data)) {
    if (isBlobReference(data)) found.blobs.push(data as unknown as BlobReference)
    else if (isLegacyBlob(data)) found.legacy.push(data.cid)
    else for (const key of Object.keys(data)) collectBlobs(data[key] as Data, found)
  }
}

const isBlobReference = (object: DataObject): boolean => object['$type'] === 'blob' && object['ref'] instanceof Cid

/** Legacy reference, from before blobs had a `$type`: exactly `{ cid, mimeType }`, both text. */
export function isLegacyBlob(value: unknown): value is { cid: string; mimeType: string } {
  if (typeof value !== 'object' || value === null) return false
  const { cid, mimeType } = value as Record<string, unknown>
  return (
    typeof cid === 'string' && typeof mimeType === 'string' && Object.keys(value).length === 2 && parseCid(cid) !== null
  )
}

function isObject(data: Data): data is DataObject {
  return (
    typeof data === 'object' &&
    data !== null &&
    !Array.isArray(data) &&
    !(data instanceof Uint8Array) &&
    !(data instanceof Cid)
  )
}
