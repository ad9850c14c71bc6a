/** The cached documents of lexicons, with one statement more than others have, and another bound. */
import { cachedDocuments, type CachedDocument } from '../../../platform/database/cached-documents.ts'
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis, Nsid } from '../../../protocol/identifiers.ts'

export const publishedLexicons = cachedDocuments(sql`published_lexicon`, sql`nsid`)

/**
 * Returns null if the document is not stored. `knownFetchedAt`: of the version that the caller has; null if it has
 * none. The text is null if that is the stored one.
 */
export const findLexicon = (
  reader: Reader,
  nsid: Nsid,
  knownFetchedAt: Millis | null,
): Promise<(Omit<CachedDocument, 'text'> & { text: string | null }) | null> =>
  reader.get(sql`
    SELECT CASE WHEN fetched_at = ${knownFetchedAt ?? -1} THEN NULL ELSE document END AS text, fetched_at AS "fetchedAt"
    FROM published_lexicon WHERE nsid = ${nsid}`)

/** Delete all but the documents that were fetched last: `maxCount` of them, and `maxBytes` together. */
export const trimLexicons = (tx: Tx, maxCount: number, maxBytes: number): Promise<number> =>
  tx.run(sql`
    DELETE FROM published_lexicon WHERE nsid IN (
      SELECT nsid FROM (
        SELECT nsid, ROW_NUMBER() OVER newest AS place, SUM(OCTET_LENGTH(document)) OVER newest AS bytes
        FROM published_lexicon WINDOW newest AS (ORDER BY fetched_at DESC, nsid ROWS UNBOUNDED PRECEDING)
      ) kept
      WHERE place > ${maxCount} OR bytes > ${maxBytes})`)
