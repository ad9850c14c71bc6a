/** Rows of `waitlist_entry`. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Handle, Millis } from '../../../protocol/identifiers.ts'
import type { Language } from '../../../protocol/languages.ts'

/**
 * Add an entry. Changes nothing if the email address is already on the list, but writes the row again: a transaction
 * without writes would be answered before the disk has flushed, and the response time would reveal who is on the list.
 */
export const insertEntry = (
  tx: Tx,
  { email, handle, language, now }: { email: string; handle: Handle | null; language: Language | null; now: Millis },
): Promise<number> =>
  tx.run(
    sql`INSERT INTO waitlist_entry (email, handle, language, created_at) VALUES (${email}, ${handle}, ${language}, ${now}) ON CONFLICT (email) DO UPDATE SET email = excluded.email`,
  )

export interface WaitlistRow {
  seq: number
  email: string
  handle: string | null
  createdAt: Millis
}

/** Returns at most `limit` entries older than `beforeSeq`, newest first. Null starts at the newest. */
export const listEntries = (reader: Reader, { beforeSeq, limit }: { beforeSeq: number | null; limit: number }) =>
  reader.all<WaitlistRow>(sql`
    SELECT seq, email, handle, created_at AS "createdAt" FROM waitlist_entry
    WHERE ${beforeSeq === null ? sql`1 = 1` : sql`seq < ${beforeSeq}`} ORDER BY seq DESC LIMIT ${limit}`)

/** Delete an entry. Returns 0 if the address is not on the list. */
export const deleteEntry = (tx: Tx, email: string): Promise<number> =>
  tx.run(sql`DELETE FROM waitlist_entry WHERE email = ${email}`)

/** Delete an entry. Returns it, or null if the address is not on the list. */
export const takeEntry = (tx: Tx, email: string): Promise<{ language: string | null } | null> =>
  tx.get<{ language: string | null }>(sql`DELETE FROM waitlist_entry WHERE email = ${email} RETURNING language`)

export const countEntries = async (reader: Reader): Promise<number> =>
  (await reader.get<{ total: number }>(sql`SELECT count(*) AS total FROM waitlist_entry`))!.total
