/** SQL of the `reserved_signing_key` table. */
import { sql, type Reader, type Tx, type Writer } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import type { WrappedKey } from '../accounts/accounts.ts'

/** Returns null if no key is reserved for the DID. */
export const findReservedKey = (reader: Reader, did: Did): Promise<WrappedKey | null> =>
  reader.get(sql`SELECT signing_key AS "signingKey", wrapped FROM reserved_signing_key WHERE did = ${did}`)

export const insertReservedKey = (tx: Tx, { signingKey, wrapped }: WrappedKey, did: Did | null, now: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO reserved_signing_key (signing_key, did, wrapped, created_at) VALUES (${signingKey}, ${did}, ${wrapped}, ${now})`)

export const forgetReservedKey = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM reserved_signing_key WHERE did = ${did}`)

export const deleteReservedKeysBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM reserved_signing_key WHERE created_at < ${instant}`)
