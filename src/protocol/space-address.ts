/**
 * Addresses of permissioned data. A space is `at://<authority>/space/<type>/<skey>`; a record in it appends
 * `/<author>/<collection>/<rkey>`. Authority and author are DIDs, never handles.
 *
 * Every value has one spelling: no query, no fragment, no slash at the end.
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
  /** The URI of the space, of which the other members are the parts. */
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

/** Parses the address of a space itself; null for that of a record, and for any other text. */
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
 * Whether a text is, or is meant as, something in a space, well-formed or not. No URI of public data is: its collection
 * has dots.
 */
export const isInSpace = (text: string): boolean => spacePattern.test(text)

const stringPattern = /"\s*ats?:\/\/[^/"]*\/space["/?#]/i

/**
 * Whether any string in a JSON text, a name of a member included, is such an address. Reads the text itself: of members
 * with one name a parser keeps the last alone, and another parser may keep the first.
 */
export const hasAddressInSpace = (json: string): boolean =>
  stringPattern.test(
    json.replaceAll(/\\u([0-9a-f]{4})|\\([/nrt])/gi, (_, code: string | undefined, plain: string) =>
      code === undefined ? (plain === '/' ? '/' : ' ') : String.fromCharCode(Number.parseInt(code, 16)),
    ),
  )

const partsOf = (text: string): string[] | null =>
  text.startsWith(SCHEME) && text.length <= MAX_URI_CHARS ? text.slice(SCHEME.length).split('/') : null

function spaceOf([first, segment, second, third]: readonly string[]): SpaceAddress | null {
  if (segment !== SPACE_SEGMENT) return null
  const authority = parseDid(first!)
  const type = parseNsid(second!)
  const skey = parseRecordKey(third!)
  return authority && type && skey && { uri: spaceUri(authority, type, skey), authority, type, skey }
}
