/**
 * Addresses of permissioned data. A space is `at://<authority>/space/<type>/<skey>`; a record in it appends
 * `/<author>/<collection>/<rkey>`. Authority and author are DIDs, never handles.
 *
 * Each address has exactly one text: no query, no fragment, no slash at the end.
 *
 * Source: atproto proposal 0016, "Addressing".
 */
import {
  parseDid,
  parseNsid,
  parseRecordKey,
  type Did,
  type Nsid,
  type RecordKey,
  type SpaceUri,
} from './identifiers.ts'
import { SPACE_SEGMENT } from './space-wire.ts'

export interface SpaceAddress {
  /** The URI of the space. The other members are its parts. */
  uri: SpaceUri
  /** Decides who has access. */
  authority: Did
  type: Nsid
  /** Has the syntax of a record key. */
  skey: RecordKey
}

export interface SpaceRecordAddress {
  space: SpaceAddress
  author: Did
  collection: Nsid
  rkey: RecordKey
}

const SCHEME = 'at://'
const MAX_URI_CHARS = 8192
const SPACE_PARTS = 4
const RECORD_PARTS = 7

export const spaceUri = (authority: Did, type: Nsid, skey: RecordKey): SpaceUri =>
  `${SCHEME}${authority}/${SPACE_SEGMENT}/${type}/${skey}` as SpaceUri

/** `path` is `collection/rkey`. */
export const spaceRecordUri = (space: SpaceUri, author: Did, path: string): string => `${space}/${author}/${path}`

/** Parses the address of a space; null for the address of a record, and for any other text. */
export function parseSpaceUri(text: string): SpaceAddress | null {
  const parts = partsOf(text)
  return parts?.length === SPACE_PARTS ? spaceOf(parts) : null
}

/** Parses the address of a record in a space; null for any other text. */
export function parseSpaceRecordUri(text: string): SpaceRecordAddress | null {
  const parts = partsOf(text)
  if (parts?.length !== RECORD_PARTS) return null
  const space = spaceOf(parts)
  const author = parseDid(parts[4]!)
  const collection = parseNsid(parts[5]!)
  const rkey = parseRecordKey(parts[6]!)
  return space && author && collection && rkey && { space, author, collection, rkey }
}

/** Whether a text names a space or a record in one. */
export const isSpaceAddress = (text: string): boolean =>
  parseSpaceUri(text) !== null || parseSpaceRecordUri(text) !== null

const spacePattern = /^\s*ats?:\/\/[^/]*\/space(?:\/|$)/i

/**
 * Whether a text addresses something in a space, well-formed or not. No URI of public data matches, because its second
 * segment is a collection, which has dots.
 */
export const isInSpace = (text: string): boolean => spacePattern.test(text)

const stringPattern = /"\s*ats?:\/\/[^/"]*\/space["/?#]/i

const [QUOTE, BACKSLASH, SLASH, SPACE, COLON] = [0x22, 0x5c, 0x2f, 0x20, 0x3a]
const [LETTER_A, LETTER_S, LETTER_U, LETTER_Z] = [0x41, 0x73, 0x75, 0x5a]
const ESCAPE_DIGITS = 4
const hexDigits = new Map(
  [...'0123456789abcdefABCDEF'].map((digit) => [digit.charCodeAt(0), Number.parseInt(digit, 16)]),
)
/** JSON escapes of one letter, as far as they matter here, with the characters that they stand for. */
const shortEscapes = new Map([...'/nrt'].map((letter) => [letter.charCodeAt(0), letter === '/' ? SLASH : SPACE]))

/**
 * The beginning of an address; the states count how many of its characters have been read. In two states, more than one
 * character may follow.
 */
const opening = Buffer.from('at:://*space')
const [NO_ADDRESS, AFTER_SCHEME, SECURE, SLASHES, AUTHORITY, WHOLE] = [-1, 2, 3, 4, 6, opening.length]
const furtherBlanks = new Set([
  0xa0,
  0x1680,
  0x2028,
  0x2029,
  0x202f,
  0x205f,
  0x3000,
  0xfeff,
  ...Array.from({ length: 11 }, (_, i) => 0x2000 + i),
])
/** Characters that may follow `space`; with any other, the word would be longer. */
const ends = new Set(Buffer.from('"/?#'))

/**
 * Whether any string in a JSON text, including member names, is such an address. Reads the text itself, because parsers
 * disagree about which of two members with the same name they keep. A text with escapes is read character by character:
 * it may consist of nothing but escapes, and replacing a megabyte of them would take 100 ms.
 */
export function hasAddressInSpace(json: string): boolean {
  if (!json.includes('\\')) return stringPattern.test(json)
  let read = NO_ADDRESS
  for (let at = 0; at < json.length; at++) {
    let code = json.charCodeAt(at)
    if (code === BACKSLASH) {
      const letter = json.charCodeAt(at + 1)
      const isNumber = letter === LETTER_U
      const escaped = isNumber ? hexAt(json, at + 2) : (shortEscapes.get(letter) ?? -1)
      if (escaped >= 0) {
        code = escaped
        at += isNumber ? 1 + ESCAPE_DIGITS : 1
      }
    }
    if (read === WHOLE && ends.has(code)) return true
    read = code === QUOTE ? 0 : readOn(read, code)
  }
  return false
}

/** Returns the state after one more character: how much of an address has been read, or `NO_ADDRESS`. */
function readOn(read: number, code: number): number {
  if (read === NO_ADDRESS || read === WHOLE) return NO_ADDRESS
  if (read === AUTHORITY) return code === SLASH ? AUTHORITY + 1 : AUTHORITY
  if (read === 0 && isBlank(code)) return 0
  const lower = code >= LETTER_A && code <= LETTER_Z ? code | 0x20 : code
  if (read === AFTER_SCHEME) return lower === LETTER_S ? SECURE : code === COLON ? SLASHES : NO_ADDRESS
  return lower === opening[read] ? read + 1 : NO_ADDRESS
}

const isBlank = (code: number): boolean => code <= SPACE || furtherBlanks.has(code)

/** Returns -1 unless all four are digits. */
function hexAt(text: string, start: number): number {
  let value = 0
  for (let at = start; at < start + ESCAPE_DIGITS; at++) {
    const digit = hexDigits.get(text.charCodeAt(at))
    if (digit === undefined) return -1
    value = value * 16 + digit
  }
  return value
}

const partsOf = (text: string): string[] | null =>
  text.startsWith(SCHEME) && text.length <= MAX_URI_CHARS ? text.slice(SCHEME.length).split('/') : null

function spaceOf([first, segment, second, third]: readonly string[]): SpaceAddress | null {
  if (segment !== SPACE_SEGMENT) return null
  const authority = parseDid(first!)
  const type = parseNsid(second!)
  const skey = parseRecordKey(third!)
  return authority && type && skey && { uri: spaceUri(authority, type, skey), authority, type, skey }
}
