/** SQL of the `web_document` table: the documents of did:web accounts, as their owners gave them to this server. */
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface WebDocument {
  /** JSON, as its owner wrote it. */
  document: string
  /** Since when this server serves it; null if it does not. */
  hostedSince: Millis | null
}

export const findWebDocument = (reader: Reader, did: Did): Promise<WebDocument | null> =>
  reader.get(sql`SELECT document, hosted_since AS "hostedSince" FROM web_document WHERE did = ${did}`)

/** Store a document, or replace it. Whether it is hosted stays as it is. */
export const putWebDocument = (writer: Writer, did: Did, document: string): Promise<number> =>
  writer.run(sql`
    INSERT INTO web_document (did, document) VALUES (${did}, ${document})
    ON CONFLICT (did) DO UPDATE SET document = excluded.document`)

/** A null `hostedSince` ends hosting. Returns 0 if there is no document. */
export const setHostedSince = (writer: Writer, did: Did, hostedSince: Millis | null): Promise<number> =>
  writer.run(
    sql`UPDATE web_document SET hosted_since = ${hostedSince}, hosting_changes = hosting_changes + 1 WHERE did = ${did}`,
  )

/** How often this server has begun or ended serving a document, and whether it serves the document now. */
export interface HostingState {
  changes: number
  isHosted: boolean
}

export async function hostingStateOf(reader: Reader, did: Did): Promise<HostingState> {
  const row = await reader.get<{ changes: number; hostedSince: Millis | null }>(
    sql`SELECT hosting_changes AS changes, hosted_since AS "hostedSince" FROM web_document WHERE did = ${did}`,
  )
  return { changes: row?.changes ?? 0, isHosted: row !== null && row.hostedSince !== null }
}

export const deleteWebDocument = (writer: Writer, did: Did): Promise<number> =>
  writer.run(sql`DELETE FROM web_document WHERE did = ${did}`)
