/** Stores authorization codes, by hash. */
import type { Origin } from '../../../http/origin.ts'
import { sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { PendingRequest } from './authorization-request-store.ts'
import { expiringContents } from './expiring-contents.ts'

/** The decided request for which a code was issued. */
export interface Grant extends PendingRequest {
  did: Did
  /** The granted scopes, in the order of the request. */
  scopes: readonly string[]
  /** True if a wallet signed the scopes. Their permission sets are already expanded. */
  scopeIsFixed: boolean
  /** The delegation by which a delegate decided. Missing if the account holder decided. */
  delegationId?: string
  /** Where the decision was made. Missing in codes that an older version issued. */
  origin?: Origin
}

const codes = expiringContents<Grant>(sql`oauth_code`, sql`code_hash`)

export const insertAuthorizationCode = (tx: Tx, codeHash: string, grant: Grant, expiresAt: Millis): Promise<number> =>
  tx.run(
    sql`INSERT INTO oauth_code (code_hash, did, content, expires_at) VALUES (${codeHash}, ${grant.did}, ${JSON.stringify(grant)}, ${expiresAt})`,
  )

/** Returns the request of the code; null if the code is unknown, used or expired. */
export const findAuthorizationCode = codes.find

/** Delete the code and return its request; null if the code is unknown, used or expired. */
export const takeAuthorizationCode = codes.take

/** Returns how many codes of the account were deleted. */
export const deleteAuthorizationCodesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_code WHERE did = ${did}`)

/**
 * Delete the codes by which an account lets apps act for others. Codes of other delegates of the same accounts go too:
 * a code is good for a minute, and the app asks for another.
 */
export const deleteAuthorizationCodesBy = (tx: Tx, delegateDid: Did): Promise<number> =>
  tx.run(sql`
    DELETE FROM oauth_code
    WHERE did IN (SELECT did FROM delegation WHERE delegate_did = ${delegateDid} AND status <> 'ended')
      AND content LIKE '%"delegationId":%'`)

export const deleteAuthorizationCodesBefore = codes.deleteExpired
