/** Stores pushed authorization requests, by hash of their `request_uri`. */
import { sql, type Writer } from '../../../platform/database/database.ts'
import type { AuthorizationRequest } from '../../../protocol/authorization-request.ts'
import type { ClientMetadata } from '../../../protocol/client-metadata.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { ClientKey } from './client-keys.ts'
import { expiringContents, type Expiring } from './expiring-contents.ts'

/** The metadata that pages show of a client. The rest of it is fetched again when it is needed. */
export type ShownClient = Pick<ClientMetadata, 'clientId' | 'name' | 'policyUri' | 'tosUri'>

/** A request that awaits a decision, with the client and its key at the time of the push. */
export interface PendingRequest {
  request: AuthorizationRequest
  client: ShownClient
  /** Null for a public client. */
  clientKey: ClientKey | null
}

export type OpenRequest = Expiring<PendingRequest>

const requests = expiringContents<PendingRequest>(sql`oauth_request`, sql`id_hash`)

export const insertRequest = (
  writer: Writer,
  idHash: string,
  pending: PendingRequest,
  expiresAt: Millis,
): Promise<number> => {
  const { clientId, name, policyUri, tosUri } = pending.client
  // Store only what pages show: metadata may have 64 KiB, and strangers push requests.
  const content = JSON.stringify({ ...pending, client: { clientId, name, policyUri, tosUri } satisfies ShownClient })
  return writer.run(
    sql`INSERT INTO oauth_request (id_hash, client_id, content, expires_at) VALUES (${idHash}, ${pending.request.clientId}, ${content}, ${expiresAt})`,
  )
}

/** Returns the request; null if it is unknown, decided or expired. */
export const findRequest = requests.find

/** Extend the lifetime of a request. Never shortens it. */
export const extendRequest = (writer: Writer, idHash: string, expiresAt: Millis): Promise<number> =>
  writer.run(
    sql`UPDATE oauth_request SET expires_at = ${expiresAt} WHERE id_hash = ${idHash} AND expires_at < ${expiresAt}`,
  )

/** Delete the request and return it; null if it is unknown, decided or expired. */
export const takeRequest = requests.take

export const deleteRequest = (writer: Writer, idHash: string): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_request WHERE id_hash = ${idHash}`)

export const deleteRequestsBefore = requests.deleteExpired
