/** SQL of the `passkey` and `used_passkey_challenge` tables. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface StoredPasskey {
  credentialId: string
  did: Did
  rpId: string
  publicKey: string
  signCount: number
  transports: string
  isSynced: boolean
  name: string
  createdAt: Millis
  lastUsedAt: Millis | null
}

type Row = Omit<StoredPasskey, 'isSynced'> & { isSynced: number }

const columns = sql`credential_id AS "credentialId", did, rp_id AS "rpId", public_key AS "publicKey",
  sign_count AS "signCount", transports, is_synced AS "isSynced", name, created_at AS "createdAt",
  last_used_at AS "lastUsedAt"`

const passkeyOf = (row: Row): StoredPasskey => ({ ...row, isSynced: row.isSynced === 1 })

export async function findPasskey(reader: Reader, credentialId: string): Promise<StoredPasskey | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM passkey WHERE credential_id = ${credentialId}`)
  return row && passkeyOf(row)
}

/** Returns the passkeys of an account, the oldest first. */
export const passkeysOf = async (reader: Reader, did: Did): Promise<StoredPasskey[]> =>
  (
    await reader.all<Row>(sql`SELECT ${columns} FROM passkey WHERE did = ${did} ORDER BY created_at, credential_id`)
  ).map(passkeyOf)

/** Whether any account here has a passkey. */
export const hasPasskeys = async (reader: Reader): Promise<boolean> =>
  (await reader.get<{ did: Did }>(sql`SELECT did FROM passkey LIMIT 1`)) !== null

/** Returns 0 if an account has the credential already. */
export const insertPasskey = (tx: Tx, passkey: Omit<StoredPasskey, 'lastUsedAt'>): Promise<number> => {
  const { credentialId, did, rpId, publicKey, signCount, transports, isSynced, name, createdAt } = passkey
  return tx.run(sql`
    INSERT INTO passkey (credential_id, did, rp_id, public_key, sign_count, transports, is_synced, name, created_at)
    VALUES (${credentialId}, ${did}, ${rpId}, ${publicKey}, ${signCount}, ${transports}, ${isSynced ? 1 : 0}, ${name}, ${createdAt})
    ON CONFLICT (credential_id) DO NOTHING`)
}

export const notePasskeyUse = (
  tx: Tx,
  credentialId: string,
  { signCount, now }: { signCount: number; now: Millis },
): Promise<number> =>
  tx.run(sql`UPDATE passkey SET sign_count = ${signCount}, last_used_at = ${now} WHERE credential_id = ${credentialId}`)

export const setPasskeyName = (tx: Tx, did: Did, credentialId: string, name: string): Promise<number> =>
  tx.run(sql`UPDATE passkey SET name = ${name} WHERE did = ${did} AND credential_id = ${credentialId}`)

export const deletePasskey = (tx: Tx, did: Did, credentialId: string): Promise<number> =>
  tx.run(sql`DELETE FROM passkey WHERE did = ${did} AND credential_id = ${credentialId}`)

export const deletePasskeysOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM passkey WHERE did = ${did}`)

/** Returns 0 if it was answered before. */
export const insertUsedChallenge = (tx: Tx, challenge: string, expiresAt: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO used_passkey_challenge (challenge, expires_at) VALUES (${challenge}, ${expiresAt})
    ON CONFLICT (challenge) DO NOTHING`)

export const deleteUsedChallengesBefore = (tx: Tx, now: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM used_passkey_challenge WHERE expires_at <= ${now}`)
