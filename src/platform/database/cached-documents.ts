/**
 * Documents that others publish, kept in a table with the columns `document` (JSON) and `fetched_at`, because they can
 * be fetched again.
 */
import { randomInt } from 'node:crypto'
import type { Millis } from '../../protocol/identifiers.ts'
import { MAX_SKEW_MILLIS } from '../running/clock.ts'
import { sql, type Database, type Reader, type Sql, type Writer } from './database.ts'

export interface CachedDocument {
  /** The JSON of the document. */
  text: string
  /** When the document was asked for. */
  fetchedAt: Millis
}

/** Limits of each table. Strangers can fill it. */
const MAX_ROWS = 20_000
const MAX_BYTES = 64 * 1024 ** 2
/** Documents added between two checks of the table's size. */
const LOOK_EVERY = 100
/** Rows deleted in one statement, which blocks all other writes. */
const MAX_DELETED = 1000

export interface CachedDocuments {
  /** Returns null if no document of that key is cached. */
  find(reader: Reader, id: string): Promise<CachedDocument | null>
  /**
   * Cache a document that was asked for at `askedAt`, unless the cached one was asked for later, perhaps by another
   * server: the response to an earlier request may arrive after a change. A time in the future means that a clock was
   * wrong. Returns how many rows changed, as the others do.
   */
  put(writer: Writer, id: string, text: string, askedAt: Millis, now?: Millis): Promise<number>
  forget(writer: Writer, id: string): Promise<number>
  /** Deletes some of the documents that were asked for before an instant, at most `limit`. */
  forgetBefore(writer: Writer, instant: Millis, limit: number): Promise<number>
  /** Returns what keeps the table small: call it after each `put`. It needs an index on the length of `document`. */
  bounded(db: Pick<Database, 'get' | 'run'>): () => Promise<void>
}

export const cachedDocuments = (table: Sql, key: Sql): CachedDocuments => ({
  find: (reader, id) =>
    reader.get(sql`SELECT document AS text, fetched_at AS "fetchedAt" FROM ${table} WHERE ${key} = ${id}`),
  put: (writer, id, text, askedAt, now = askedAt) =>
    writer.run(sql`
      INSERT INTO ${table} (${key}, document, fetched_at) VALUES (${id}, ${text}, ${askedAt})
      ON CONFLICT (${key}) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at
      WHERE ${table}.fetched_at <= excluded.fetched_at OR ${table}.fetched_at > ${now + MAX_SKEW_MILLIS}`),
  forget: (writer, id) => writer.run(sql`DELETE FROM ${table} WHERE ${key} = ${id}`),
  forgetBefore: (writer, instant, limit) =>
    writer.run(sql`
      DELETE FROM ${table} WHERE ${key} IN (
        SELECT ${key} FROM ${table} WHERE fetched_at < ${instant} ORDER BY fetched_at LIMIT ${limit})`),
  bounded(db) {
    let added = 0
    return async () => {
      if (++added < LOOK_EVERY) return
      added = 0
      await shrink(db, table, key)
    }
  },
})

/**
 * Beyond `MAX_ROWS`, deletes a run of rows that are neighbours in key order, at a random place: this needs no further
 * index, and an attacker cannot target a row. Beyond `MAX_BYTES`, deletes the largest documents, as many as were added,
 * so the sum shrinks, and those who publish large documents lose theirs.
 */
async function shrink(db: Pick<Database, 'get' | 'run'>, table: Sql, key: Sql): Promise<void> {
  const { count, bytes } = (await db.get<{ count: number; bytes: number }>(
    sql`SELECT count(*) AS count, CAST(coalesce(sum(OCTET_LENGTH(document)), 0) AS BIGINT) AS bytes FROM ${table}`,
  ))!
  if (bytes > MAX_BYTES)
    await db.run(
      sql`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY OCTET_LENGTH(document) DESC LIMIT ${LOOK_EVERY})`,
    )
  const surplus = Math.min(count - MAX_ROWS, MAX_DELETED)
  if (surplus <= 0) return
  const place = randomInt(count - surplus + 1)
  await db.run(
    sql`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} ORDER BY ${key} LIMIT ${surplus} OFFSET ${place})`,
  )
}
