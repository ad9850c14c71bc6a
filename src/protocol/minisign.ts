/**
 * Signatures of files in the form of minisign: Ed25519 over the BLAKE2b-512 digest of the file, and a comment that is
 * signed too. The files of a release are signed in this form, so that the tool itself can check them.
 *
 * Source: https://jedisct1.github.io/minisign/, "Signature format" and "Public key format".
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** Begins keys, and signatures over the file itself, which newer versions of minisign no longer make. */
const PURE = 'Ed'
const PREHASHED = 'ED'
const KEY_ID_BYTES = 8
const PUBLIC_KEY_BYTES = 32
const SIGNATURE_BYTES = 64
const UNTRUSTED = 'untrusted comment: '
const TRUSTED = 'trusted comment: '
/** What precedes the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410). */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/** Longest file of a signature that is read. minisign itself writes at most 8 KiB of comments. */
export const MAX_SIGNATURE_BYTES = 16 * 1024

export interface MinisignKey {
  /** The key's number, which the signature names too. */
  id: Buffer
  key: KeyObject
}

export type MinisignOutcome = { ok: true; comment: string } | { ok: false; fault: string }

/** Read a public key: its one line of base64 (`RW…`), or the file that begins with a comment. */
export function parseMinisignKey(text: string): MinisignKey | null {
  const line = text.trim().split(/\r?\n/).at(-1)!
  const bytes = parts(line, PURE, KEY_ID_BYTES, PUBLIC_KEY_BYTES)
  if (bytes === null) return null
  const [id, key] = bytes
  return { id, key: createPublicKey({ key: Buffer.concat([spkiPrefix, key]), format: 'der', type: 'spki' }) }
}

/** Returns the line that `parseMinisignKey` reads. */
export const minisignKeyText = (id: Uint8Array, publicKey: Uint8Array): string =>
  Buffer.concat([Buffer.from(PURE), id, publicKey]).toString('base64')

/**
 * Check a signature, the text of a `.minisig` file, of the file with this BLAKE2b-512 `digest`. Returns the signed
 * comment, or why the signature does not count.
 */
export function verifyMinisign(text: string, { id, key }: MinisignKey, digest: Uint8Array): MinisignOutcome {
  const [untrusted = '', line = '', trusted = '', commentLine = '', ...rest] = text.replace(/\n$/, '').split(/\r?\n/)
  if (!untrusted.startsWith(UNTRUSTED) || !trusted.startsWith(TRUSTED) || rest.length > 0)
    return { ok: false, fault: 'is not a minisign signature' }
  const bytes = parts(line, PREHASHED, KEY_ID_BYTES, SIGNATURE_BYTES)
  const ofComment = exactBase64(commentLine, SIGNATURE_BYTES)
  if (bytes === null || ofComment === null) return { ok: false, fault: 'is not a minisign signature' }
  const [signer, signature] = bytes
  if (!signer.equals(id)) return { ok: false, fault: 'was made with another key' }
  const comment = trusted.slice(TRUSTED.length)
  const isGenuine =
    verify(null, digest, key, signature) &&
    verify(null, Buffer.concat([signature, Buffer.from(comment)]), key, ofComment)
  return isGenuine ? { ok: true, comment } : { ok: false, fault: 'does not match the file' }
}

/** Sign the BLAKE2b-512 `digest` of a file. Returns the text of its `.minisig` file. `comment` is one line. */
export function signMinisign(digest: Uint8Array, id: Uint8Array, key: KeyObject, comment: string): string {
  const signature = sign(null, digest, key)
  const ofComment = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key)
  return [
    `${UNTRUSTED}signature of a release`,
    Buffer.concat([Buffer.from(PREHASHED), id, signature]).toString('base64'),
    TRUSTED + comment,
    ofComment.toString('base64'),
    '',
  ].join('\n')
}

/** Returns the two parts after the algorithm's name, or null if the text is anything else. */
function parts(text: string, algorithm: string, first: number, second: number): [Buffer, Buffer] | null {
  const bytes = exactBase64(text, algorithm.length + first + second)
  if (bytes === null || bytes.toString('latin1', 0, algorithm.length) !== algorithm) return null
  const rest = bytes.subarray(algorithm.length)
  return [rest.subarray(0, first), rest.subarray(first)]
}

function exactBase64(text: string, length: number): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === length && bytes.toString('base64') === text ? bytes : null
}
