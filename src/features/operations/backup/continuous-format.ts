/**
 * The objects of a continuous backup, by name:
 *
 * - `continuous/<chain>/key`: the key that seals the objects of the chain, itself sealed like a backup;
 * - `continuous/<chain>/master-key`: the master key, if it is stored beside the database;
 * - `continuous/<chain>/segment-<number>`: the pages of the database, as of a commit, that have changed since the
 *   previous segment, whose digest it names;
 * - `continuous/<chain>/piece-<number>-<index>`: a piece of the database file, read while the server wrote to it;
 * - `continuous/<chain>/base-<number>-<milliseconds>`: the digests of these pieces, and when they were complete.
 *
 * The pieces of a base are from different instants. The segments from its number on replace every page that changed
 * while the pieces were read. So the base can be used from its segment `complete` on, and neither writers nor
 * checkpoints wait for it.
 *
 * An object has a header in clear, which says what it is, and compressed content, sealed with AES-256-GCM, which also
 * authenticates the header.
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
/** Compressing less than this takes less time than handing it to another thread and waiting for the event loop. */
const MAX_SMALL_BYTES = 256 * 1024
/**
 * A segment is sent only if its number is less than this above the first segment that is not known to be at the
 * destination. So at most this many are under way.
 */
export const MAX_UNDER_WAY = 8
/**
 * A process that continues another process's chain skips this many numbers after its first segment: the other process
 * may have stored segments there that follow one which was never stored. More than `MAX_UNDER_WAY`.
 */
export const NUMBERS_LEFT_OUT = 64

interface Common {
  chain: string
  number: number
}

export interface SegmentHeader extends Common {
  kind: 'segment'
  /** SHA-256 of the previous segment, in hex; in the first segment, of the chain's name. */
  previous: string
  /** The content has all commits up to this instant, which is later than that of the previous segment. */
  at: Millis
  /** The highest number that the event log had used. */
  seq: number
  /** Size of the database, in pages. */
  databasePages: number
  /** Epoch of the lease under which it was made; never lower than before. Absent in earlier versions. */
  epoch?: number
  /** `sync`: no later commit was acknowledged before the destination had its segment. */
  promise?: 'async' | 'sync'
  /** Its position in the log of the database. Absent in earlier versions. */
  position?: LogPosition
  /** Number of the segment that follows, if that is not `number + 1`. */
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
  /** The base needs at least the segments from `number` to this one; if this is one less than `number`, none. */
  complete: number
  at: Millis
}

export interface PieceHeader extends Common {
  kind: 'piece'
  index: number
}

type Header = SegmentHeader | BaseHeader | PieceHeader

export interface BaseContent {
  /** Index of the first piece. Absent in earlier versions, where it is 0. */
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
  /** Only meaningful for a base. */
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

/** Compress and seal. Content of more than `maxHereBytes` is compressed on another thread: do not change it. */
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
  // Encrypt on this thread: copying to and from another one would take longer.
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(clear)
  return Buffer.concat([clear, nonce, cipher.update(compressed), cipher.final(), cipher.getAuthTag()])
}

/** Returns the header of a segment without authenticating it; null for other bytes. For segments of this process. */
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

/** Throws `OperatorError` if the object is damaged, or is not the one that its name says. */
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
