/** SQL of the `did_document` table. */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { DidDocument } from '../../../protocol/did-document.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface FetchedDocument {
  document: DidDocument
  /** When it was asked for. */
  fetchedAt: Millis
}

/** Returns null if no document of the DID is cached. */
export async function findDidDocument(reader: Reader, did: Did): Promise<FetchedDocument | null> {
  const row = await reader.get<{ document: string; fetchedAt: Millis }>(
    sql`SELECT document, fetched_at AS "fetchedAt" FROM did_document WHERE did = ${did}`,
  )
  return row && { document: JSON.parse(row.document) as DidDocument, fetchedAt: row.fetchedAt }
}

/** No two servers that share a database have clocks that are further apart. */
const MAX_SKEW_MILLIS = MINUTE_MILLIS

/**
 * Cache a document that was asked for at `askedAt`, unless a cached one was requested later, perhaps by another server:
 * the response to an earlier request may arrive after a change. A time in the future means that a clock was wrong.
 */
export const putDidDocument = (
  writer: Writer,
  document: DidDocument,
  askedAt: Millis,
  now: Millis = askedAt,
): Promise<number> =>
  writer.run(sql`
    INSERT INTO did_document (did, document, fetched_at) VALUES (${document.id}, ${JSON.stringify(document)}, ${askedAt})
    ON CONFLICT (did) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at
    WHERE did_document.fetched_at <= excluded.fetched_at OR did_document.fetched_at > ${now + MAX_SKEW_MILLIS}`)

/** Does nothing if no document of the DID is cached. */
export const replaceDidDocument = (writer: Writer, document: DidDocument): Promise<number> =>
  writer.run(sql`UPDATE did_document SET document = ${JSON.stringify(document)} WHERE did = ${document.id}`)

export const forgetDidDocument = (writer: Writer, did: Did): Promise<number> =>
  writer.run(sql`DELETE FROM did_document WHERE did = ${did}`)

export const deleteDidDocumentsBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM did_document WHERE fetched_at < ${instant}`)
