/**
 * The cache of lexicon documents. Unlike other cached documents, they have a query that skips a known text, and a bound
 * in bytes.
 */
import { cachedDocuments, type CachedDocument } from '../../../platform/database/cached-documents.ts'
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis, Nsid } from '../../../protocol/identifiers.ts'

export const publishedLexicons = cachedDocuments(sql`published_lexicon`, sql`nsid`)

/**
 * Returns null if the document is not stored. `knownFetchedAt`: when the version that the caller has was fetched; null
 * if it has none. The text is null if that version is the stored one.
 */
export const findLexicon = (
  reader: Reader,
  nsid: Nsid,
  knownFetchedAt: Millis | null,
): Promise<(Omit<CachedDocument, 'text'> & { text: string | null }) | null> =>
  reader.get(sql`
    SELECT CASE WHEN fetched_at = ${knownFetchedAt ?? -1} THEN NULL ELSE document END AS text, fetched_at AS "fetchedAt"
    FROM published_lexicon WHERE nsid = ${nsid}`)

/** Keep only the documents that were fetched last: at most `maxCount` of them, with at most `maxBytes` together. */
export const trimLexicons = (tx: Tx, maxCount: number, maxBytes: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM published_lexicon WHERE nsid IN (
      SELECT nsid FROM (
        SELECT nsid, ROW_NUMBER() OVER newest AS place, SUM(OCTET_LENGTH(document)) OVER newest AS bytes
        FROM published_lexicon WINDOW newest AS (ORDER BY fetched_at DESC, nsid ROWS UNBOUNDED PRECEDING)
      ) kept
      WHERE place > ${maxCount} OR bytes > ${maxBytes})`)
