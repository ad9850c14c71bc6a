/**
 * The objects of a continuous backup, by name:
 *
 * - `continuous/<chain>/key`: the key that seals the objects of the chain, itself sealed like a backup;
 * - `continuous/<chain>/master-key`: the master key, if it is stored beside the database;
 * - `continuous/<chain>/segment-<number>`: pages of the database as of a commit, those that changed since the segment
 *   before; it names the digest of that one;
 * - `continuous/<chain>/piece-<number>-<index>`: a piece of the database's file, read while it was written to;
 * - `continuous/<chain>/base-<number>-<milliseconds>`: the digests of these pieces, and when they were complete.
 *
 * The pieces of a base are of different instants. The segments from its number on replace every page that changed while
 * they were read. So a base can be used from its segment `complete` on, and neither writers nor checkpoints wait for
 * it.
 *
 * An object is a header in clear, which says what it is, and its compressed content, sealed with AES-256-GCM. The
 * header is authenticated with it.
 */
import { createCipheriv } from 'node:crypto'
import type { Millis } from '../../../protocol/identifiers.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { LogPosition } from '../../../platform/database/log-follower.ts'

export const CONTINUOUS = 'continuous/'
const MAGIC = 'holdfast-log-1\n'
const NONCE_BYTES = 12
/** A header is a few hundred bytes. */
const MAX_HEADER_BYTES = 4096
const WORD_BYTES = 4
/** Handing less than this to another thread, and waiting for a turn of the event loop, takes longer than doing it. */
const MAX_SMALL_BYTES = 256 * 1024
/**
 * A segment is sent only if its number is less than this above that of the first one which is not known to be at the
 * destination. So this many are under way at most.
 */
export const MAX_UNDER_WAY = 8
/**
 * A process that continues the chain of another one begins with a segment after which this many numbers are left out:
 * the other one may have stored segments there that follow one which was never stored. More than `MAX_UNDER_WAY`.
 */
export const NUMBERS_LEFT_OUT = 64

interface Common {
  chain: string
  number: number
}

export interface SegmentHeader extends Common {
  kind: 'segment'
  /** SHA-256 of the segment before, in hex; of the first one, of the name of the chain. */
  previous: string
  /** The content has all commits that were made up to this instant. Greater than that of the segment before. */
  at: Millis
  /** The highest number that the event log had used. */
  seq: number
  /** Size of the database, in pages. */
  databasePages: number
  /** Of the lease under which it was made: never less than that of the segment before. Earlier versions have none. */
  epoch?: number
  /** Whether nothing after it was acknowledged. */
  promise?: 'async' | 'sync'
  /** Where the log of the database had it. Earlier versions have none. */
  position?: LogPosition
  /** Number of the segment that follows, if it is not the next number. */
  next?: number
  /** Number of a segment that was known to be at the destination when this one was made. */
  through?: number
}

/** Number of the segment that follows. */
export const numberAfter = ({ number, next = number + 1 }: Pick<SegmentHeader, 'number' | 'next'>): number => next

export interface BaseHeader extends Common {
  kind: 'base'
  /** Digest of the segment before `number`. */
  previous: string
  /** The base can be used with all segments from `number` to this one, at least. One less than `number`: with none. */
  complete: number
  at: Millis
}

export interface PieceHeader extends Common {
  kind: 'piece'
  index: number
}

type Header = SegmentHeader | BaseHeader | PieceHeader

export interface BaseContent {
  /** The index of the first piece; earlier versions have none, which is 0. */
  first?: number
  /** SHA-256 of each piece, in hex. */
  pieces: string[]
}

const padded = (number: number, digits = 12): string => String(number).padStart(digits, '0')
export const inChain = (chain: string, part = ''): string => `${CONTINUOUS}${chain}/${part}`
export const segmentName = (chain: string, number: number): string => inChain(chain, `segment-${padded(number)}`)
export const pieceName = (chain: string, number: number, index: number): string =>
  inChain(chain, `piece-${padded(number)}-${padded(index, 6)}`)
export const baseName = ({ chain, number, at }: BaseHeader): string => inChain(chain, `base-${padded(number)}-${at}`)

export interface ObjectName {
  chain: string
  kind: 'segment' | 'piece' | 'base' | 'key'
  number: number
  /** Of a base. */
  at: Millis
}

/** Returns null if it is not the name of an object of a continuous backup. */
export function parseObjectName(name: string): ObjectName | null {
  const [, chain, kind, number, last] =
    /^continuous\/([\dA-Za-z-]{1,60})\/(segment|piece|base|key|master-key)(?:-(\d{1,15}))?(?:-(\d{1,15}))?(?:\.age)?$/.exec(
      name,
    ) ?? []
  if (chain === undefined || kind === undefined) return null
  return {
    chain,
    kind: kind === 'master-key' ? 'key' : (kind as ObjectName['kind']),
    number: Number(number ?? 0),
    at: Number(last ?? 0),
  }
}

export const digestOf = (bytes: Uint8Array | string): string =>
  new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

const imported = (key: Uint8Array): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', new Uint8Array(key), 'AES-GCM', false, ['decrypt'])

/** Compresses and seals. Content of more than `maxHereBytes` is compressed on another thread: leave it as it is. */
export async function sealObject(
  key: Uint8Array,
  header: Header,
  content: Uint8Array,
  maxHereBytes = MAX_SMALL_BYTES,
): Promise<Uint8Array> {
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(WORD_BYTES)
  length.writeUInt32BE(text.byteLength)
  const clear = new Uint8Array(Buffer.concat([Buffer.from(MAGIC), length, text]))
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES))
  const isSmall = content.byteLength <= maxHereBytes
  const compressed = isSmall
    ? Bun.zstdCompressSync(content, { level: 1 })
    : await Bun.zstdCompress(content, { level: 1 })
  // On another thread, the copies would take longer than this.
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(clear)
  return Buffer.concat([clear, nonce, cipher.update(compressed), cipher.final(), cipher.getAuthTag()])
}

/** The header of a segment, as its own process has written it; null for other bytes. */
export function headerOf(bytes: Uint8Array): SegmentHeader | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const start = MAGIC.length + WORD_BYTES
  if (buffer.byteLength < start || buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) return null
  try {
    return JSON.parse(buffer.toString('utf8', start, start + buffer.readUInt32BE(MAGIC.length))) as SegmentHeader
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

/** Throws `OperatorError` if the object is damaged, or is another one than its name says. */
export async function openObject<Kind extends Header['kind']>(
  key: Uint8Array,
  bytes: Uint8Array,
  name: string,
  kind: Kind,
): Promise<{ header: Extract<Header, { kind: Kind }>; content: Uint8Array }> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const start = MAGIC.length + WORD_BYTES
  const headerBytes = buffer.byteLength < start ? Infinity : buffer.readUInt32BE(MAGIC.length)
  const end = start + headerBytes
  const damaged = (cause?: unknown) => new OperatorError(`${name} is damaged`, { cause })
  if (buffer.toString('latin1', 0, MAGIC.length) !== MAGIC || headerBytes > MAX_HEADER_BYTES) throw damaged()
  const clear = new Uint8Array(buffer.subarray(0, end))
  try {
    const compressed = await crypto.subtle.decrypt(
      { name: 'AES-GCM', iv: new Uint8Array(buffer.subarray(end, end + NONCE_BYTES)), additionalData: clear },
      await imported(key),
      new Uint8Array(buffer.subarray(end + NONCE_BYTES)),
    )
    const header = JSON.parse(buffer.toString('utf8', start, end)) as Header
    const found = parseObjectName(name)
    if (header.kind !== kind || header.chain !== found?.chain || header.number !== found.number)
      throw new OperatorError(`${name} has the content of another object`)
    return {
      header: header as Extract<Header, { kind: Kind }>,
      content: await Bun.zstdDecompress(new Uint8Array(compressed)),
    }
  } catch (error) {
    throw error instanceof OperatorError ? error : damaged(error)
  }
}
