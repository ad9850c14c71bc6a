/**
 * DIDs in DNS: TXT records in which the owner of a domain names the DID of a handle, or of a group of lexicons.
 *
 * Source: atproto "Handle", "DNS TXT Method"; "Lexicon", "Lexicon Publication and Resolution".
 */
import { parseDid, type Did } from './identifiers.ts'

const PREFIX = 'did='

/**
 * The DID in the TXT records of a name. Returns null unless there is exactly one `did=` record; even equal ones count
 * as several.
 */
export function recordedDid(texts: readonly string[]): Did | null {
  const [record, ...others] = texts.filter((text) => text.startsWith(PREFIX))
  return record === undefined || others.length > 0 ? null : parseDid(record.slice(PREFIX.length))
}
