/**
 * The field's identifiers as branded strings: parse at the edge, trust inside.
 *
 * Grammar: atproto specs "DID", "Handle", "NSID", "TID", "Record Key", "AT URI"; the checks are those of
 * `@atproto/syntax`.
 */
import {
  AtUri as ParsedUri,
  isAtUriString,
  isDatetimeString,
  isValidDid,
  isValidHandle,
  isValidNsid,
  isValidRecordKey,
  isValidTid,
  normalizeHandle,
} from '@atproto/syntax'

declare const brand: unique symbol
type Brand<T, Name extends string> = T & { readonly [brand]: Name }

export type Did = Brand<string, 'Did'>
export type Handle = Brand<string, 'Handle'>
export type Nsid = Brand<string, 'Nsid'>
export type Tid = Brand<string, 'Tid'>
export type RecordKey = Brand<string, 'RecordKey'>
export type AtUri = Brand<string, 'AtUri'>
/** The URI of a space of permissioned data, which is no `AtUri`: see `space-address.ts`. */
export type SpaceUri = Brand<string, 'SpaceUri'>

/** An instant: integer milliseconds since the epoch. RFC 3339 text exists only on the wire. */
export type Millis = number

/** RFC 3339 in UTC, with milliseconds and `Z`. */
export const wireTime = (at: Millis): string => new Date(at).toISOString()
export const wireTimeOrNull = (at: Millis | null): string | null => (at === null ? null : wireTime(at))

/** Returns the instant of a datetime in the strict form of lexicons; null if it is not valid. */
export const parseDatetime = (text: string): Millis | null => (isDatetimeString(text) ? Date.parse(text) : null)

export const parseDid = (text: string): Did | null => (isValidDid(text) ? (text as string as Did) : null)
/** The handle of an identity whose own does not verify. atproto: handle, "Usage and Implementation Guidelines". */
export const INVALID_HANDLE = 'handle.invalid' as string as Handle

/** Returns the handle in lower case, because handles are case-insensitive; null if it is not valid. */
export const parseHandle = (text: string): Handle | null =>
  isValidHandle(text) ? (normalizeHandle(text) as string as Handle) : null
export const parseNsid = (text: string): Nsid | null => (isValidNsid(text) ? (text as string as Nsid) : null)
export const parseTid = (text: string): Tid | null => (isValidTid(text) ? (text as string as Tid) : null)
export const parseRecordKey = (text: string): RecordKey | null =>
  isValidRecordKey(text) ? (text as string as RecordKey) : null
export const parseAtUri = (text: string): AtUri | null =>
  isAtUriString(text, { strict: true }) ? (text as string as AtUri) : null

/** `path` is `collection/rkey`. */
export const recordUri = (did: Did, path: string): AtUri => `at://${did}/${path}` as AtUri

/** The parts of a record's URI. `authority` is a DID or a handle; missing parts are empty. Throws on any other text. */
export function recordUriParts(uri: string): { authority: string; collection: string; rkey: string } {
  const { host, collection, rkey } = new ParsedUri(uri)
  return { authority: host, collection, rkey }
}
