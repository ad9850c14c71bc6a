/** SQL of the `reserved_signing_key` table. */
import { createHash } from 'node:crypto'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'

/** Returns null if no key is reserved for the DID. */
export const findReservedKey = (reader: Reader, did: Did): Promise<WrappedKey | null> =>
  reader.get(sql`SELECT signing_key AS "signingKey", wrapped FROM reserved_signing_key WHERE did = ${did}`)

/** Returns the reserved key with this public key, unless it is reserved for another DID; null if there is none. */
export const reservedKeyNamed = (reader: Reader, signingKey: string, did: Did): Promise<WrappedKey | null> =>
  reader.get(
    sql`SELECT signing_key AS "signingKey", wrapped FROM reserved_signing_key WHERE signing_key = ${signingKey} AND (did IS NULL OR did = ${did})`,
  )

/**
 * Reserve a key for a DID, in place of an earlier one, and bind it to one sign-up: to the person that `boundTo` names,
 * of which only the hash is stored. Returns 0 if the key no longer exists, is reserved for another DID, or is bound to
 * another sign-up.
 */
export async function bindReservedKey(
  tx: Tx,
  { signingKey, did, boundTo }: { signingKey: string; did: Did; boundTo: string },
): Promise<number> {
  const hash = createHash('sha256').update(boundTo).digest('hex')
  await tx.run(sql`DELETE FROM reserved_signing_key WHERE did = ${did} AND signing_key <> ${signingKey}`)
  return tx.run(sql`
    UPDATE reserved_signing_key SET did = ${did}, bound_to = ${hash}
    WHERE signing_key = ${signingKey} AND (did IS NULL OR did = ${did}) AND (bound_to IS NULL OR bound_to = ${hash})`)
}

export const insertReservedKey = (
  tx: Tx,
  { signingKey, wrapped }: WrappedKey,
  did: Did | null,
  now: Millis,
): Promise<number> =>
  tx.run(
    sql`INSERT INTO reserved_signing_key (signing_key, did, wrapped, created_at) VALUES (${signingKey}, ${did}, ${wrapped}, ${now})`,
  )

/** Store a key that another server had reserved. Does nothing if the key already exists, or if the DID has one. */
export const keepReservedKey = (
  tx: Tx,
  { signingKey, wrapped }: WrappedKey,
  did: Did | null,
  now: Millis,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO reserved_signing_key (signing_key, did, wrapped, created_at) VALUES (${signingKey}, ${did}, ${wrapped}, ${now})
    ON CONFLICT DO NOTHING`)

export const forgetReservedKey = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM reserved_signing_key WHERE did = ${did}`)

export const deleteReservedKeysBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM reserved_signing_key WHERE created_at < ${instant}`)
