/**
 * DIDs in DNS: how the owner of a domain says in TXT records whose a handle, or a group of lexicons, is.
 *
 * Source: atproto "Handle", "DNS TXT Method"; "Lexicon", "Publication and Resolution".
 */
import { parseDid, type Did } from './identifiers.ts'

const PREFIX = 'did='

/** The DID that the TXT records of a name give. Exactly one `did=` record is an answer; several are none, even alike ones. */
export function recordedDid(texts: readonly string[]): Did | null {
  const [record, ...others] = texts.filter((text) => text.startsWith(PREFIX))
  return record === undefined || others.length > 0 ? null : parseDid(record.slice(PREFIX.length))
}
