/**
 * Content identifiers, in the only form that atproto allows: CIDv1, codec dag-cbor or raw, SHA-256.
 *
 * A `Cid` is its 36 bytes; its text is computed once, on demand. Two CIDs are equal if their bytes are.
 *
 * Source: atproto "Data Model", "Link and CID Formats"; DASL "CID".
 */

export const codecs = { dagCbor: 0x71, raw: 0x55 } as const
type Codec = (typeof codecs)[keyof typeof codecs]

/** `01 codec 12 20`, then the 32 bytes of the digest. */
export const CID_BYTES_LENGTH = 36
const DIGEST_OFFSET = 4
const DIGEST_LENGTH = 32
const SHA256_CODE = 0x12

export class Cid {
  readonly bytes: Uint8Array
  #text: string | null

  /**
   * `bytes` are 36 valid CID bytes that are never modified; for unchecked input, use the functions below. `text` is
   * their text, if known.
   */
  constructor(bytes: Uint8Array, text: string | null = null) {
    this.bytes = bytes
    this.#text = text
  }

  toString(): string {
    return (this.#text ??= cidText(this.bytes))
  }

  toJSON(): { $link: string } {
    return { $link: this.toString() }
  }

  equals(other: Cid | null | undefined): boolean {
    return other != null && (this === other || equalBytes(this.bytes, other.bytes))
  }

  // `multiformats` recognises a CID of another implementation by these members, so its users accept ours.
  get '/'(): Uint8Array {
    return this.bytes
  }
  get version(): 1 {
    return 1
  }
  get code(): Codec {
    return this.bytes[1] as Codec
  }
  get digest(): Uint8Array {
    return this.bytes.subarray(DIGEST_OFFSET)
  }
  get multihash(): { code: number; size: number; digest: Uint8Array; bytes: Uint8Array } {
    return { code: SHA256_CODE, size: DIGEST_LENGTH, digest: this.digest, bytes: this.bytes.subarray(2) }
  }
}

export const cidOfCbor = (block: Uint8Array): Cid => cidOf(codecs.dagCbor, block)
export const cidOfBlob = (bytes: Uint8Array): Cid => cidOf(codecs.raw, bytes)

const contentDigest = new Uint8Array(DIGEST_LENGTH)

/**
 * Hashes into memory of its own and copies the digest: a view into the bytes of the CID would give them a separate
 * buffer object, several times as large.
 */
function cidOf(codec: Codec, content: Uint8Array): Cid {
  Bun.SHA256.hash(content, contentDigest)
  return cidOfDigest(codec, contentDigest)
}

/** Whether a block matches a CID, given as bytes that begin with the CID. */
export function isBlockOf(cid: Uint8Array, block: Uint8Array): boolean {
  Bun.SHA256.hash(block, contentDigest)
  for (let i = 0; i < DIGEST_LENGTH; i++) if (contentDigest[i] !== cid[DIGEST_OFFSET + i]) return false
  return true
}

/** The CID of raw bytes, from their SHA-256 (32 bytes) computed while streaming. */
export const cidOfBlobDigest = (digest: Uint8Array): Cid => cidOfDigest(codecs.raw, digest)
/** The CID of a block, from its SHA-256. */
export const cidOfCborDigest = (digest: Uint8Array): Cid => cidOfDigest(codecs.dagCbor, digest)

function cidOfDigest(codec: Codec, digest: Uint8Array): Cid {
  const bytes = cidPrefix(codec)
  bytes.set(digest, DIGEST_OFFSET)
  return new Cid(bytes)
}

function cidPrefix(codec: Codec): Uint8Array {
  const bytes = new Uint8Array(CID_BYTES_LENGTH)
  bytes[0] = 1
  bytes[1] = codec
  bytes[2] = SHA256_CODE
  bytes[3] = DIGEST_LENGTH
  return bytes
}

/** Copies the CID at `at`, which the caller has checked. The loop avoids an intermediate view. */
export function cidAt(source: Uint8Array, at: number): Cid {
  const bytes = new Uint8Array(CID_BYTES_LENGTH)
  for (let i = 0; i < CID_BYTES_LENGTH; i++) bytes[i] = source[at + i] as number
  return new Cid(bytes)
}

/** Whether these bytes are at `at`. */
export function isAt(source: Uint8Array, at: number, bytes: Uint8Array): boolean {
  // From the end, because CIDs share their first bytes.
  for (let i = bytes.length - 1; i >= 0; i--) if (source[at + i] !== bytes[i]) return false
  return true
}

/** Returns null if the bytes are not a CID. Does not copy them. */
export function cidFromBytes(bytes: Uint8Array): Cid | null {
  return bytes.length === CID_BYTES_LENGTH && hasCidPrefix(bytes, 0) ? new Cid(bytes) : null
}

/** Whether a CID of the supported form starts at `at`. The caller must ensure that there are 36 bytes. */
export function hasCidPrefix(bytes: Uint8Array, at: number): boolean {
  const codec = bytes[at + 1]
  return (
    bytes[at] === 1 &&
    (codec === codecs.dagCbor || codec === codecs.raw) &&
    bytes[at + 2] === SHA256_CODE &&
    bytes[at + 3] === DIGEST_LENGTH
  )
}

const TEXT_LENGTH = 59 // 'b' and 58 letters of five bits
/** The first 32 bits are constant except for the codec, and the last two bits are unused. */
const cidForm = /^baf[yk]rei[a-h][a-z2-7]{50}[aeimquy4]$/

/** Whether `parseCid` accepts the text. */
export const isCid = (text: string): boolean => cidForm.test(text)

/** Parses canonical text only: lower-case base32, no padding, unused bits zero. Returns null for anything else. */
export function parseCid(text: string): Cid | null {
  if (text.length !== TEXT_LENGTH || text.charCodeAt(0) !== 0x62) return null
  const bytes = new Uint8Array(CID_BYTES_LENGTH)
  let at = 0
  let bits = 0
  let value = 0
  for (let i = 1; i < TEXT_LENGTH; i++) {
    const digit = base32Digits[text.charCodeAt(i)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return null
    value = (value << 5) | digit
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = value >>> bits
      value &= (1 << bits) - 1
    }
  }
  return value === 0 && hasCidPrefix(bytes, 0) ? new Cid(bytes, text) : null
}

const base32Alphabet = Buffer.from('abcdefghijklmnopqrstuvwxyz234567')
const NO_DIGIT = 255
const base32Digits = new Uint8Array(128).fill(NO_DIGIT)
base32Alphabet.forEach((letter, value) => (base32Digits[letter] = value))

const letters = Buffer.alloc(TEXT_LENGTH)

/**
 * The text of 36 bytes: seven groups of five bytes, each eight letters, and one more byte. A special case of base32,
 * because every commit prints a dozen CIDs.
 */
export function cidText(bytes: Uint8Array): string {
  letters[0] = 0x62 // 'b'
  let to = 1
  for (let i = 0; i < CID_BYTES_LENGTH - 1; i += 5) {
    const high = ((bytes[i] as number) << 12) | ((bytes[i + 1] as number) << 4) | ((bytes[i + 2] as number) >>> 4)
    const low = (((bytes[i + 2] as number) & 15) << 16) | ((bytes[i + 3] as number) << 8) | (bytes[i + 4] as number)
    writeLetters(high, to)
    writeLetters(low, to + 4)
    to += 8
  }
  const last = bytes[CID_BYTES_LENGTH - 1] as number
  letters[to++] = base32Alphabet[last >>> 3] as number
  letters[to] = base32Alphabet[(last & 7) << 2] as number
  return letters.toString('latin1')
}

function writeLetters(half: number, to: number): void {
  letters[to] = base32Alphabet[half >>> 15] as number
  letters[to + 1] = base32Alphabet[(half >>> 10) & 31] as number
  letters[to + 2] = base32Alphabet[(half >>> 5) & 31] as number
  letters[to + 3] = base32Alphabet[half & 31] as number
}

/** RFC 4648 base32, lower-case, unpadded. */
export function base32(bytes: Uint8Array): string {
  const letters = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let at = 0
  let bits = 0
  let value = 0
  for (let i = 0; i < bytes.length; i++) {
    value = (value << 8) | (bytes[i] as number)
    bits += 8
    while (bits >= 5) {
      bits -= 5
      letters[at++] = base32Alphabet[(value >>> bits) & 31] as number
    }
    value &= (1 << bits) - 1
  }
  if (bits > 0) letters[at] = base32Alphabet[(value << (5 - bits)) & 31] as number
  return letters.toString('latin1')
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  // Compare from the end, because CIDs share their first bytes.
  for (let i = a.length - 1; i >= 0; i--) if (a[i] !== b[i]) return false
  return true
}
