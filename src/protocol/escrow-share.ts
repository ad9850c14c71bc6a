/**
 * The envelope of one share of an account's recovery seed, and its text form.
 *
 * `02 | set id, 4 bytes big-endian | index | payload, 32 bytes | checksum, 4 bytes`. The checksum is the beginning of
 * the SHA-256 of everything before it; it detects typing errors and is no protection. A share alone reveals nothing
 * about the seed.
 */
import { createHash } from 'node:crypto'
import { base32 as base32Text } from './cid.ts'
import { base32upper } from 'multiformats/bases/base32'

export const shareIndexes = { keychain: 1, escrow: 2, paper: 3 } as const
export type ShareIndex = (typeof shareIndexes)[keyof typeof shareIndexes]

export interface EscrowShare {
  /** Equal in all shares of one split. Shares of different splits must not be combined. */
  setId: number
  index: ShareIndex
  payload: Uint8Array
  /** The whole envelope. */
  bytes: Uint8Array
}

/** `format`: the text is not base32, or has the wrong length. The other faults are in the order of their checks. */
export type ShareFault = 'format' | 'version' | 'checksum' | 'index'
export type ShareOutcome = { ok: true; share: EscrowShare } | { ok: false; fault: ShareFault }

const SHARE_BYTES = 42
export const SHARE_PAYLOAD_BYTES = 32
export const SHARE_VERSION = 2
const SET_ID_OFFSET = 1
const INDEX_OFFSET = 5
const PAYLOAD_OFFSET = 6
const CHECKSUM_OFFSET = PAYLOAD_OFFSET + SHARE_PAYLOAD_BYTES
/**
 * 42 bytes in base32 without padding: letters of both cases, checked before the case is folded, because folding would
 * turn `ı` into `I`.
 */
const shareForm = /^[A-Za-z2-7]{68}$/

/** Parses the text form: base32 (RFC 4648) without padding, in either case, with white space anywhere. Never throws. */
export function parseShare(text: string): ShareOutcome {
  const letters = text.replace(/\s+/g, '')
  if (!shareForm.test(letters)) return { ok: false, fault: 'format' }
  try {
    return readShare(base32upper.baseDecode(letters.toUpperCase()))
  } catch {
    return { ok: false, fault: 'format' } // the library throws on unused bits that are not zero
  }
}

/** Reads an envelope. Checks, in this order: length, version, checksum, index. */
export function readShare(bytes: Uint8Array): ShareOutcome {
  if (bytes.length !== SHARE_BYTES) return { ok: false, fault: 'format' }
  if (bytes[0] !== SHARE_VERSION) return { ok: false, fault: 'version' }
  if (!checksumOf(bytes).equals(bytes.subarray(CHECKSUM_OFFSET))) return { ok: false, fault: 'checksum' }
  const index = bytes[INDEX_OFFSET]!
  if (!isShareIndex(index)) return { ok: false, fault: 'index' }
  const setId = Buffer.from(bytes.buffer, bytes.byteOffset).readUInt32BE(SET_ID_OFFSET)
  return { ok: true, share: { setId, index, payload: bytes.subarray(PAYLOAD_OFFSET, CHECKSUM_OFFSET), bytes } }
}

const isShareIndex = (value: number): value is ShareIndex => Object.values<number>(shareIndexes).includes(value)

/** Makes an envelope. `setId` is an unsigned integer of 32 bits, `payload` has 32 bytes. */
export function shareEnvelope({ setId, index, payload }: Omit<EscrowShare, 'bytes'>): EscrowShare {
  const bytes = Buffer.alloc(SHARE_BYTES)
  bytes[0] = SHARE_VERSION
  bytes.writeUInt32BE(setId, SET_ID_OFFSET)
  bytes[INDEX_OFFSET] = index
  bytes.set(payload, PAYLOAD_OFFSET)
  bytes.set(checksumOf(bytes), CHECKSUM_OFFSET)
  return { setId, index, payload, bytes: new Uint8Array(bytes) }
}

/** Writes an envelope as 68 characters of base32. */
export const formatShare = (bytes: Uint8Array): string => base32Text(bytes).toUpperCase()

const checksumOf = (bytes: Uint8Array): Buffer =>
  createHash('sha256')
    .update(bytes.subarray(0, CHECKSUM_OFFSET))
    .digest()
    .subarray(0, SHARE_BYTES - CHECKSUM_OFFSET)
