/** SQL of the `published_lexicon` table. */
import { sql, type Reader, type Tx } from '../../platform/database/database.ts'
import type { Millis, Nsid } from '../../protocol/identifiers.ts'
import type { LexiconDocument } from '../../protocol/lexicons/lexicon-document.ts'

export interface KeptLexicon {
  document: LexiconDocument
  fetchedAt: Millis
}

/** Returns null if the document is not stored. */
export async function findLexicon(reader: Reader, nsid: Nsid): Promise<KeptLexicon | null> {
  const row = await reader.get<{ document: string; fetchedAt: Millis }>(
    sql`SELECT document, fetched_at AS "fetchedAt" FROM published_lexicon WHERE nsid = ${nsid}`,
  )
  return row && { document: JSON.parse(row.document) as LexiconDocument, fetchedAt: row.fetchedAt }
}

export async function putLexicon(tx: Tx, document: LexiconDocument, fetchedAt: Millis): Promise<void> {
  await tx.run(sql`
    INSERT INTO published_lexicon (nsid, document, fetched_at) VALUES (${document.id}, ${JSON.stringify(document)}, ${fetchedAt})
    ON CONFLICT (nsid) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at`)
}

export const deleteLexicon = (tx: Tx, nsid: Nsid): Promise<number> => tx.run(sql`DELETE FROM published_lexicon WHERE nsid = ${nsid}`)

/** Delete all but the `count` documents that were fetched last. */
export const trimLexicons = (tx: Tx, count: number): Promise<number> =>
  tx.run(sql`DELETE FROM published_lexicon WHERE nsid NOT IN (SELECT nsid FROM published_lexicon ORDER BY fetched_at DESC LIMIT ${count})`)
