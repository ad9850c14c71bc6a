/**
 * Blocks that the database itself frames as CAR sections: a chunk of rows arrives as one value, and no object is made
 * for each row. Making those objects took half the time of an export.
 *
 * In SQLite, `||` and `string_agg` turn blobs into text without changing their bytes; the cast turns them back into a
 * blob.
 */
import { sql, totalBytes, type Reader, type Sql } from '../../../platform/database/database.ts'
import { CID_BYTES_LENGTH } from '../../../protocol/cid.ts'

/** Approximate size of a chunk. */
const CHUNK_BYTES = 192 * 1024
/** Rows of the first chunk, before the size of rows is known, and of any chunk at most. */
const FIRST_ROWS = 64
const MAX_ROWS = 512
/**
 * Large blocks may follow many small ones, so the size of a chunk cannot be guessed. If all of its blocks are small, as
 * in most, it is read at once. Otherwise it is measured, and a chunk above the limit is split, down to a single row.
 */
const SMALL_BLOCK_BYTES = 8 * 1024
const MAX_CHUNK_BYTES = 1024 ** 2

/**
 * Two-byte varints, which begin almost every section, each at index 2 × its number. A look-up takes a quarter of the
 * time of encoding.
 */
const varints = new Uint8Array(2 * 0x4000)
for (let number = 0x80; number < 0x4000; number++) varints.set([(number & 0x7f) | 0x80, number >>> 7], 2 * number)

/**
 * The length varint of a CAR section, which counts the 36 bytes of the CID too. It is stored beside its block, which is
 * at most 2 MB.
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
 * SQL columns that join rows into `FramedRows`: those with small blocks, or all. `block` is the column of blocks, which
 * is empty if a large block is elsewhere. One that is lost is left out.
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

/** A single one makes an exported archive unreadable. */
export const isMisframed = ({ framing, size }: Framing): boolean =>
  framing === null || Buffer.compare(framing, framingOf({ length: size })) !== 0

/** Rows that are ordered by a key. */
export interface KeyedBlocks<Key> {
  reader: Reader
  /** Which rows: `FROM … WHERE …`. */
  rows: Sql
  /** Their keys, and the lengths of their blocks. */
  key: Sql
  bytes: Sql
  /** Bounds before and after every key. */
  first: Key
  last: Key
  /** The rows after the first key, up to and including the second: those with small blocks, or all. */
  framed(after: Key, upTo: Key, which: 'small' | 'all'): Promise<FramedRows>
}

/** All rows, in chunks of about the same size whatever the size of a row. */
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

/** The key `count` rows behind another; null if there are fewer rows. */
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

/** Total bytes of the blocks after the first key, up to and including the second. */
const bytesIn = <Key extends string | Uint8Array>(
  { reader, rows, key, bytes }: KeyedBlocks<Key>,
  after: Key,
  upTo: Key,
): Promise<number> =>
  totalBytes(reader, sql`SELECT ${bytes} AS bytes ${rows} AND ${key} > ${after} AND ${key} <= ${upTo}`)
