/**
 * Documents that others publish, kept in a table with the columns `document` (JSON) and `fetched_at`, because they can
 * be fetched again.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { BoundedTable } from './bounded-table.ts'
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

/** No two servers that share a database have clocks that are further apart. */
const MAX_SKEW_MILLIS = MINUTE_MILLIS

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
  /** Returns what keeps the table small. It needs an index on the length of `document`. */
  bounded(db: Database): BoundedTable
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
  bounded: (db) =>
    new BoundedTable(db, { table, key, document: sql`document`, maxRows: MAX_ROWS, maxBytes: MAX_BYTES }),
})
