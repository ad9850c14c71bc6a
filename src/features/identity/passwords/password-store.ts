/** SQL of the password in the row of an account. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export const findPasswordHash = async (reader: Reader, did: Did): Promise<string | null> =>
  (await reader.get<{ hash: string | null }>(sql`SELECT password_hash AS hash FROM account WHERE did = ${did}`))
    ?.hash ?? null

export const updatePasswordHash = (tx: Tx, did: Did, hash: string | null): Promise<number> =>
  tx.run(sql`UPDATE account SET password_hash = ${hash} WHERE did = ${did}`)

/** Replace the hash of the same password. Returns 0 if the hash is no longer `before`. */
export const replacePasswordHash = (tx: Tx, did: Did, before: string, hash: string): Promise<number> =>
  tx.run(sql`UPDATE account SET password_hash = ${hash} WHERE did = ${did} AND password_hash = ${before}`)
