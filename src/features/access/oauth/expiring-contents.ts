/**
 * The SQL of tables whose rows stand for something until they expire: with the columns `content` (JSON) and
 * `expires_at`.
 */
import { sql, type Reader, type Sql, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

interface Row {
  content: string
  expiresAt: Millis
}

/** The content of a row, and when it expires. */
export type Expiring<Content> = Content & { expiresAt: Millis }

/** Returns null for an expired row, whether or not it has been deleted yet. */
const liveAt = <Content>(row: Row | null, now: Millis): Expiring<Content> | null =>
  row && row.expiresAt > now ? { ...(JSON.parse(row.content) as Content), expiresAt: row.expiresAt } : null

const columns = sql`content, expires_at AS "expiresAt"`

export const expiringContents = <Content>(table: Sql, key: Sql) => ({
  /** Returns the content of the row; null if there is none, or it has expired. */
  find: async (reader: Reader, id: string, now: Millis): Promise<Expiring<Content> | null> =>
    liveAt(await reader.get<Row>(sql`SELECT ${columns} FROM ${table} WHERE ${key} = ${id}`), now),
  /** Delete the row and return its content; null if there is none, or it has expired. */
  take: async (tx: Tx, id: string, now: Millis): Promise<Expiring<Content> | null> =>
    liveAt(await tx.get<Row>(sql`DELETE FROM ${table} WHERE ${key} = ${id} RETURNING ${columns}`), now),
  /** Delete some of the rows that have expired at `now`, the oldest first. Returns how many. */
  deleteExpired: (writer: Writer, now: Millis, limit: number): Promise<number> =>
    writer.run(sql`
      DELETE FROM ${table} WHERE ${key} IN (
        SELECT ${key} FROM ${table} WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${limit})`),
})
