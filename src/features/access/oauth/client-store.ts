/** Stores the metadata documents of clients. */
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface KeptDocument {
  /** The JSON document that the client published. */
  document: string
  fetchedAt: Millis
}

/** Returns the stored document, however old; null if there is none. */
export const findClientDocument = (reader: Reader, clientId: string): Promise<KeptDocument | null> =>
  reader.get<KeptDocument>(
    sql`SELECT document, fetched_at AS "fetchedAt" FROM oauth_client WHERE client_id = ${clientId}`,
  )

export const keepClientDocument = (writer: Writer, clientId: string, document: string, now: Millis): Promise<number> =>
  writer.run(sql`
    INSERT INTO oauth_client (client_id, document, fetched_at) VALUES (${clientId}, ${document}, ${now})
    ON CONFLICT (client_id) DO UPDATE SET document = ${document}, fetched_at = ${now}`)

export const deleteClientDocumentsBefore = (writer: Writer, fetchedBefore: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_client WHERE fetched_at < ${fetchedBefore}`)
