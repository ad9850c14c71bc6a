/** Stores authorization codes, by hash. */
import type { Origin } from '../../../http/origin.ts'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { PendingRequest } from './authorization-request-store.ts'

/** The decided request that a code stands for. */
export interface Grant extends PendingRequest {
  did: Did
  /** The granted scopes, in the order of the request. */
  scopes: readonly string[]
  /** True if a wallet signed the scopes. Their permission sets are already expanded. */
  scopeIsFixed: boolean
  /** Where the decision was made. Missing in codes that an older version issued. */
  origin?: Origin
}

interface Row {
  content: string
  expiresAt: Millis
}

const grantOf = (row: Row | null, now: Millis): Grant | null =>
  row && row.expiresAt > now ? (JSON.parse(row.content) as Grant) : null

export const insertAuthorizationCode = (tx: Tx, codeHash: string, grant: Grant, expiresAt: Millis): Promise<number> =>
  tx.run(
    sql`INSERT INTO oauth_code (code_hash, did, content, expires_at) VALUES (${codeHash}, ${grant.did}, ${JSON.stringify(grant)}, ${expiresAt})`,
  )

/** Returns what the code stands for; null if it is unknown, used or expired. */
export async function findAuthorizationCode(reader: Reader, codeHash: string, now: Millis): Promise<Grant | null> {
  return grantOf(
    await reader.get<Row>(sql`SELECT content, expires_at AS "expiresAt" FROM oauth_code WHERE code_hash = ${codeHash}`),
    now,
  )
}

/** Delete the code and return what it stands for; null if it is unknown, used or expired. */
export async function takeAuthorizationCode(tx: Tx, codeHash: string, now: Millis): Promise<Grant | null> {
  return grantOf(
    await tx.get<Row>(
      sql`DELETE FROM oauth_code WHERE code_hash = ${codeHash} RETURNING content, expires_at AS "expiresAt"`,
    ),
    now,
  )
}

/** Returns how many codes of the account were deleted. */
export const deleteAuthorizationCodesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_code WHERE did = ${did}`)

/** Delete the codes that have expired at `now`. Returns how many. */
export const deleteAuthorizationCodesBefore = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_code WHERE expires_at <= ${now}`)
