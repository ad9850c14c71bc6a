/**
 * Reads blocks that the database itself frames as CAR sections: a chunk of rows arrives as one value, without an object
 * for each row. Creating those objects took half the time of an export.
 *
 * In SQLite, `||` and `string_agg` turn blobs into text without changing their bytes; the cast turns them back into a
 * blob.
 */
import { sql, totalBytes, type Reader, type Sql } from '../../../platform/database/database.ts'
import { CID_BYTES_LENGTH } from '../../../protocol/cid.ts'

/** Approximate size of a chunk. */
const CHUNK_BYTES = 192 * 1024
/** Rows in the first chunk, before the size of rows is known; and the most rows in any chunk. */
const FIRST_ROWS = 64
const MAX_ROWS = 512
/**
 * Large blocks may follow many small ones, so the size of a chunk cannot be guessed. If all blocks of a chunk are
 * small, as in most chunks, it is read at once. Otherwise its bytes are added up first, and a chunk above the limit is
 * split, down to a single row.
 */
const SMALL_BLOCK_BYTES = 8 * 1024
const MAX_CHUNK_BYTES = 1024 ** 2

/**
 * All two-byte varints, with which almost every section begins; that of `number` is at index 2 × `number`. A look-up
 * takes a quarter of the time of encoding.
 */
const varints = new Uint8Array(2 * 0x4000)
for (let number = 0x80; number < 0x4000; number++) varints.set([(number & 0x7f) | 0x80, number >>> 7], 2 * number)

/**
 * The length varint of a CAR section, which counts the 36 bytes of the CID too. The database stores it beside the
 * block. A block has at most 2 MB, so three bytes are enough.
 */
export function framingOf({ length }: Pick<Uint8Array, 'length'>): Uint8Array {
  const number = length + CID_BYTES_LENGTH
  if (number < 0x80) return new Uint8Array([number])
  if (number < 0x4000) return varints.subarray(2 * number, 2 * number + 2)
  return new Uint8Array([(number & 0x7f) | 0x80, ((number >>> 7) & 0x7f) | 0x80, number >>> 14])
}

/** A chunk of rows, as one value. */
export interface FramedRows {
  /** Null if there are no rows. */
  sections: Uint8Array | null
  /** How many rows were left out because their blocks are not small. */
  leftOut: number
}

/**
 * SQL columns that join rows into `FramedRows`: only rows with small blocks, or all rows. `block` is empty if a large
 * block is stored elsewhere. With `all`, an empty block is one that was lost, and is left out.
 */
export function framedBlocks(block: Sql, which: 'small' | 'all'): Sql {
  const isSmall = sql`length(${block}) BETWEEN 1 AND ${SMALL_BLOCK_BYTES}`
  const framed = (bytes: Sql) => sql`string_agg(framing || cid || ${bytes}, '')`
  return which === 'small'
    ? sql`CAST(${framed(block)} FILTER (WHERE ${isSmall}) AS BLOB) AS sections, count(*) FILTER (WHERE NOT ${isSmall}) AS "leftOut"`
    : sql`CAST(${framed(sql`NULLIF(${block}, CAST('' AS BLOB))`)} AS BLOB) AS sections, 0 AS "leftOut"`
}

/** How a row is framed, and the size of its block. */
export interface Framing {
  framing: Uint8Array | null
  size: number
}

/** Whether the stored framing does not fit the block. A single such row makes an exported archive unreadable. */
export const isMisframed = ({ framing, size }: Framing): boolean =>
  framing === null || Buffer.compare(framing, framingOf({ length: size })) !== 0

/** Rows that are ordered by a key. */
export interface KeyedBlocks<Key> {
  reader: Reader
  /** Which rows: `FROM … WHERE …`. */
  rows: Sql
  /** The key of a row, and the length of its block. */
  key: Sql
  bytes: Sql
  /** Keys that sort before and after the key of every row. */
  first: Key
  last: Key
  /** The rows after key `after`, up to and including `upTo`: only those with small blocks, or all. */
  framed(after: Key, upTo: Key, which: 'small' | 'all'): Promise<FramedRows>
}

/** Yields all rows, in chunks of about the same size, whatever the size of a row. */
export async function* framedChunks<Key extends string | Uint8Array>(
  blocks: KeyedBlocks<Key>,
): AsyncGenerator<Uint8Array> {
  const { first, last } = blocks
  let count = FIRST_ROWS
  for (let after = first; after !== last;) {
    const upTo = (await keyAfter(blocks, after, count)) ?? last
    let chunk = await blocks.framed(after, upTo, 'small')
    if (chunk.leftOut > 0) {
      const bytes = await bytesIn(blocks, after, upTo)
      if (bytes > MAX_CHUNK_BYTES && count > 1) {
        count = Math.max(1, Math.floor((count * CHUNK_BYTES) / bytes))
        continue
      }
      chunk = await blocks.framed(after, upTo, 'all')
    }
    const { sections } = chunk
    if (sections !== null) {
      yield sections
      count = Math.max(1, Math.min(MAX_ROWS, Math.round((count * CHUNK_BYTES) / sections.length)))
    }
    after = upTo
  }
}

/** The key `count` rows after `after`; null if there are fewer rows. */
async function keyAfter<Key extends string | Uint8Array>(
  { reader, rows, key }: KeyedBlocks<Key>,
  after: Key,
  count: number,
): Promise<Key | null> {
  const row = await reader.get<{ last: Key }>(
    sql`SELECT ${key} AS last ${rows} AND ${key} > ${after} ORDER BY ${key} LIMIT 1 OFFSET ${count - 1}`,
  )
  return row && row.last
}

/** Total bytes of the blocks after key `after`, up to and including `upTo`. */
const bytesIn = <Key extends string | Uint8Array>(
  { reader, rows, key, bytes }: KeyedBlocks<Key>,
  after: Key,
  upTo: Key,
): Promise<number> =>
  totalBytes(reader, sql`SELECT ${bytes} AS bytes ${rows} AND ${key} > ${after} AND ${key} <= ${upTo}`)
