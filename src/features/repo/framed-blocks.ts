/**
 * Blocks that the database frames as sections of an archive: a stretch of rows arrives as one value, and nothing is made
 * for each of them. Half the time of an export went into that.
 *
 * In SQLite `||` and `string_agg` make text of blobs, whose bytes stay as they are; the cast tells that they are none.
 */
import { sql, type Sql } from '../../platform/database/database.ts'
import { CID_BYTES_LENGTH } from '../../protocol/cid.ts'

/** Bytes of a stretch, about. */
const STRETCH_BYTES = 192 * 1024
/** Rows of a stretch while nothing is known of their size, and at most. */
const FIRST_ROWS = 64
const MAX_ROWS = 512

/** The varints of two bytes, which almost all sections begin with, each at twice its number: looked up in a quarter of the time. */
const varints = new Uint8Array(2 * 0x4000)
for (let number = 0x80; number < 0x4000; number++) varints.set([(number & 0x7f) | 0x80, number >>> 7], 2 * number)

/** Rows keep it beside their block, at most 2 MB: the varint of the section, which counts the 36 bytes of the CID too. */
export function framingOf({ length }: Pick<Uint8Array, 'length'>): Uint8Array {
  const number = length + CID_BYTES_LENGTH
  if (number < 0x80) return new Uint8Array([number])
  if (number < 0x4000) return varints.subarray(2 * number, 2 * number + 2)
  return new Uint8Array([(number & 0x7f) | 0x80, ((number >>> 7) & 0x7f) | 0x80, number >>> 14])
}

/** An aggregate: rows as one BLOB of sections, NULL when there are none. `bytes` is the column of the block. */
export const framedBlocks = (bytes: Sql): Sql => sql`CAST(string_agg(framing || cid || ${bytes}, '') AS BLOB)`

/** Rows of one framing, with blocks of one size. */
export interface Framing {
  framing: Uint8Array | null
  size: number
  count: number
}

/** Rows whose framing is not that of their block. One of them makes an archive unreadable. */
export const misframed = (framings: readonly Framing[]): number =>
  framings.filter(({ framing, size }) => framing === null || Buffer.compare(framing, framingOf({ length: size })) !== 0).reduce((sum, { count }) => sum + count, 0)

/** A table whose rows lie in the order of a key. */
export interface KeyedBlocks<Key> {
  /** Before every key, and behind. */
  first: Key
  last: Key
  /** The key `count` rows behind another; null when there are not so many. */
  keyAfter(after: Key, count: number): Promise<Key | null>
  /** What lies behind one key, up to another and with it, framed. */
  framed(after: Key, upTo: Key): Promise<Uint8Array | null>
}

/** All rows in stretches of much the same size, whatever the size of a row. */
export async function* stretches<Key>({ first, last, keyAfter, framed }: KeyedBlocks<Key>): AsyncGenerator<Uint8Array> {
  let rows = FIRST_ROWS
  for (let after = first; after !== last; ) {
    const upTo = (await keyAfter(after, rows)) ?? last
    const stretch = await framed(after, upTo)
    if (stretch !== null) {
      yield stretch
      rows = Math.max(1, Math.min(MAX_ROWS, Math.round((rows * STRETCH_BYTES) / stretch.length)))
    }
    after = upTo
  }
}
