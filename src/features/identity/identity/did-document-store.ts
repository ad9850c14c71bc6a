/** The cached documents of DIDs. */
import { cachedDocuments } from '../../../platform/database/cached-documents.ts'
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { DidDocument } from '../../../protocol/did-document.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface FetchedDocument {
  document: DidDocument
  /** When the document was requested. */
  fetchedAt: Millis
}

export const didDocuments = cachedDocuments(sql`did_document`, sql`did`)

/** Returns null if no document of the DID is cached. */
export async function findDidDocument(reader: Reader, did: Did): Promise<FetchedDocument | null> {
  const cached = await didDocuments.find(reader, did)
  return cached && { document: JSON.parse(cached.text) as DidDocument, fetchedAt: cached.fetchedAt }
}

/** Caches a document. The instants are as for `put` of cached documents. */
export const putDidDocument = (writer: Writer, document: DidDocument, askedAt: Millis, now?: Millis): Promise<number> =>
  didDocuments.put(writer, document.id, JSON.stringify(document), askedAt, now)

/** Does nothing if no document of the DID is cached. */
export const replaceDidDocument = (writer: Writer, document: DidDocument): Promise<number> =>
  writer.run(sql`UPDATE did_document SET document = ${JSON.stringify(document)} WHERE did = ${document.id}`)

export const forgetDidDocument = (writer: Writer, did: Did): Promise<number> => didDocuments.forget(writer, did)
