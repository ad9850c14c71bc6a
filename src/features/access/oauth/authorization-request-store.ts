/** Stores pushed authorization requests, by hash of their `request_uri`. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { AuthorizationRequest } from '../../../protocol/authorization-request.ts'
import type { ClientMetadata } from '../../../protocol/client-metadata.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { ClientKey } from './client-authentication.ts'

/** A request that awaits a decision, with the client's metadata and key at the time of the push. */
export interface PendingRequest {
  request: AuthorizationRequest
  client: ClientMetadata
  /** Null for a public client. */
  clientKey: ClientKey | null
}

export interface OpenRequest extends PendingRequest {
  expiresAt: Millis
}

interface Row {
  content: string
  expiresAt: Millis
}

const pendingOf = (row: Row | null, now: Millis): OpenRequest | null =>
  row && row.expiresAt > now ? { ...(JSON.parse(row.content) as PendingRequest), expiresAt: row.expiresAt } : null

export const insertRequest = (
  writer: Writer,
  idHash: string,
  pending: PendingRequest,
  expiresAt: Millis,
): Promise<number> =>
  writer.run(
    sql`INSERT INTO oauth_request (id_hash, client_id, content, expires_at) VALUES (${idHash}, ${pending.request.clientId}, ${JSON.stringify(pending)}, ${expiresAt})`,
  )

/** Returns the request; null if it is unknown, decided or expired. */
export async function findRequest(reader: Reader, idHash: string, now: Millis): Promise<OpenRequest | null> {
  return pendingOf(
    await reader.get<Row>(sql`SELECT content, expires_at AS "expiresAt" FROM oauth_request WHERE id_hash = ${idHash}`),
    now,
  )
}

/** Never shortens the lifetime. */
export const extendRequest = (writer: Writer, idHash: string, expiresAt: Millis): Promise<number> =>
  writer.run(
    sql`UPDATE oauth_request SET expires_at = ${expiresAt} WHERE id_hash = ${idHash} AND expires_at < ${expiresAt}`,
  )

/** Delete the request and return it; null if it is unknown, decided or expired. */
export async function takeRequest(tx: Tx, idHash: string, now: Millis): Promise<OpenRequest | null> {
  return pendingOf(
    await tx.get<Row>(
      sql`DELETE FROM oauth_request WHERE id_hash = ${idHash} RETURNING content, expires_at AS "expiresAt"`,
    ),
    now,
  )
}

export const deleteRequest = (writer: Writer, idHash: string): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_request WHERE id_hash = ${idHash}`)

/** Delete the requests that have expired at `now`. Returns how many. */
export const deleteRequestsBefore = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_request WHERE expires_at <= ${now}`)
