/** SQL of the `published_lexicon` table. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis, Nsid } from '../../../protocol/identifiers.ts'

export interface KeptLexicon {
  /** The JSON of the document; null if it is the one that was fetched at the time that the caller knows. */
  text: string | null
  fetchedAt: Millis
}

/**
 * Returns null if the document is not stored. `knownFetchedAt`: of the version that the caller has; null if it has
 * none.
 */
export const findLexicon = (reader: Reader, nsid: Nsid, knownFetchedAt: Millis | null): Promise<KeptLexicon | null> =>
  reader.get<KeptLexicon>(sql`
    SELECT CASE WHEN fetched_at = ${knownFetchedAt ?? -1} THEN NULL ELSE document END AS text, fetched_at AS "fetchedAt"
    FROM published_lexicon WHERE nsid = ${nsid}`)

export async function putLexicon(tx: Tx, nsid: Nsid, text: string, fetchedAt: Millis): Promise<void> {
  await tx.run(sql`
    INSERT INTO published_lexicon (nsid, document, fetched_at) VALUES (${nsid}, ${text}, ${fetchedAt})
    ON CONFLICT (nsid) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at`)
}

export const deleteLexicon = (tx: Tx, nsid: Nsid): Promise<number> =>
  tx.run(sql`DELETE FROM published_lexicon WHERE nsid = ${nsid}`)

/** Delete all but the documents that were fetched last: `maxCount` of them, and `maxBytes` together. */
export const trimLexicons = (tx: Tx, maxCount: number, maxBytes: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM published_lexicon WHERE nsid IN (
      SELECT nsid FROM (
        SELECT nsid, ROW_NUMBER() OVER newest AS place, SUM(OCTET_LENGTH(document)) OVER newest AS bytes
        FROM published_lexicon WINDOW newest AS (ORDER BY fetched_at DESC, nsid ROWS UNBOUNDED PRECEDING)
      ) kept
      WHERE place > ${maxCount} OR bytes > ${maxBytes})`)
