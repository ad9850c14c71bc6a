/** Authorization codes at rest. */
import type { Origin } from '../../http/origin.ts'
import { sql, type Reader, type Tx, type Writer } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { PendingRequest } from './authorization-request-store.ts'

/** What a code stands for. */
export interface Grant extends PendingRequest {
  did: Did
  /** In the order of the request. */
  scopes: readonly string[]
  /** The scopes are what a wallet signed: permission sets are in their place already. */
  scopeIsFixed: boolean
  /** Of who decided. Codes of an older version lack it. */
  origin?: Origin
}

interface Row {
  content: string
  expiresAt: Millis
}

const grantOf = (row: Row | null, now: Millis): Grant | null => (row && row.expiresAt > now ? (JSON.parse(row.content) as Grant) : null)

export const insertAuthorizationCode = (tx: Tx, codeHash: string, grant: Grant, expiresAt: Millis): Promise<number> =>
  tx.run(
    sql`INSERT INTO oauth_code (code_hash, did, content, expires_at) VALUES (${codeHash}, ${grant.did}, ${JSON.stringify(grant)}, ${expiresAt})`,
  )

export async function findAuthorizationCode(reader: Reader, codeHash: string, now: Millis): Promise<Grant | null> {
  return grantOf(await reader.get<Row>(sql`SELECT content, expires_at AS "expiresAt" FROM oauth_code WHERE code_hash = ${codeHash}`), now)
}

/** What the code stands for. It is gone from then on, whatever comes of it. */
export async function takeAuthorizationCode(tx: Tx, codeHash: string, now: Millis): Promise<Grant | null> {
  return grantOf(
    await tx.get<Row>(sql`DELETE FROM oauth_code WHERE code_hash = ${codeHash} RETURNING content, expires_at AS "expiresAt"`),
    now,
  )
}

export const deleteAuthorizationCodesOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM oauth_code WHERE did = ${did}`)

export const deleteAuthorizationCodesBefore = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_code WHERE expires_at <= ${now}`)
