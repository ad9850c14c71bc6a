/**
 * Which handles an account on this server may take. Rules are checked in order; the first broken rule determines the
 * error.
 *
 * Under one of the server's domains, a handle is a single label before the domain. Any other handle belongs to the
 * account to whose DID it resolves, which the caller must check (`kind: 'external'`).
 */
import { isValidTld } from '@atproto/syntax'
import { parseHandle, type Handle } from './identifiers.ts'

export interface HandlePolicy {
  /** Domains under which the server offers handles, lower-case, without a leading dot. */
  serviceDomains: readonly string[]
  /** Reserved labels, lower-case. */
  reservedLabels: ReadonlySet<string>
  /** Names of the server itself, lower-case: an account with one of them as its handle could pass for the server. */
  ownNames: ReadonlySet<string>
  /** Words that no handle may contain, lower-case, letters only. Separators and look-alike digits do not hide them. */
  blockedWords: readonly string[]
}

export type HandleFault = 'InvalidHandle' | 'HandleNotAvailable'
export type HandleOutcome =
  { ok: true; handle: Handle; kind: 'served' | 'external' } | { ok: false; error: HandleFault; message: string }

const MIN_LABEL_CHARS = 3
const MAX_LABEL_CHARS = 63
const MAX_HANDLE_CHARS = 253

/** `allowReserved` lets an operator assign reserved labels and words, and the server's own names. */
export function checkHandle(text: string, policy: HandlePolicy, { allowReserved = false } = {}): HandleOutcome {
  const refuse = (error: HandleFault, message: string): HandleOutcome => ({ ok: false, error, message })
  const handle = parseHandle(text)
  if (!handle)
    return refuse('InvalidHandle', isTooLong(text) ? 'Handle too long' : 'Input/handle must be a valid handle')
  if (!isValidTld(handle)) return refuse('InvalidHandle', 'Handle TLD is invalid or disallowed')
  if (!allowReserved && containsBlockedWord(handle, policy.blockedWords))
    return refuse('InvalidHandle', 'Inappropriate language in handle')
  const domain = servedDomain(handle, policy.serviceDomains)
  if (domain === null) return { ok: true, handle, kind: 'external' }
  const label = handle.slice(0, -domain.length - 1)
  if (label.includes('.')) return refuse('InvalidHandle', 'Invalid characters in handle')
  if (label.length < MIN_LABEL_CHARS) return refuse('InvalidHandle', 'Handle too short')
  if (!allowReserved && (policy.reservedLabels.has(label) || policy.ownNames.has(handle)))
    return refuse('HandleNotAvailable', 'Reserved handle')
  return { ok: true, handle, kind: 'served' }
}

/** atproto: handle, "Handle Identifier Syntax"; RFC 1035 section 2.3.4. */
const isTooLong = (text: string): boolean =>
  text.length > MAX_HANDLE_CHARS || text.split('.').some((label) => label.length > MAX_LABEL_CHARS)

/**
 * The server's domain that the name is under; null if there is none. If several match, because one is below another,
 * the domain that follows the first label wins, whatever the order of the list.
 */
export function servedDomain(name: string, serviceDomains: readonly string[]): string | null {
  const parent = name.slice(name.indexOf('.') + 1)
  return serviceDomains.includes(parent)
    ? parent
    : (serviceDomains.find((domain) => name.endsWith(`.${domain}`)) ?? null)
}

/** Digits that look like letters. */
const lookAlikes: Record<string, string> = { 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't' }

function containsBlockedWord(handle: string, words: readonly string[]): boolean {
  const letters = handle.replace(/[.-]/g, '').replace(/[0-9]/g, (digit) => lookAlikes[digit] ?? digit)
  return words.some((word) => letters.includes(word))
}
