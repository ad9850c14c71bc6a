/** SQL of the `operator_device`, `operator_nonce` and `operator_pairing_code` tables. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface OperatorDevice {
  id: string
  label: string
  /** A P-256 key as a did:key. */
  publicKey: string
  platform: string
  createdAt: Millis
  lastSeenAt: Millis | null
  revokedAt: Millis | null
}

const columns = sql`id, label, public_key AS "publicKey", platform, created_at AS "createdAt", last_seen_at AS "lastSeenAt", revoked_at AS "revokedAt"`

export const findOperatorDevice = (reader: Reader, id: string) =>
  reader.get<OperatorDevice>(sql`SELECT ${columns} FROM operator_device WHERE id = ${id}`)

/** Returns all devices, newest first. */
export const listOperatorDevices = (reader: Reader) =>
  reader.all<OperatorDevice>(sql`SELECT ${columns} FROM operator_device ORDER BY created_at DESC, id`)

export async function insertOperatorDevice(
  tx: Tx,
  { id, label, publicKey, platform, createdAt }: Omit<OperatorDevice, 'lastSeenAt' | 'revokedAt'>,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO operator_device (id, label, public_key, platform, created_at)
    VALUES (${id}, ${label}, ${publicKey}, ${platform}, ${createdAt})`)
}

/** Returns 0 if the device is unknown or revoked. */
export const touchDevice = (tx: Tx, id: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE operator_device SET last_seen_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`)

/** Revoke a device. Returns false if it is unknown or already revoked. */
export const revokeOperatorDevice = async (tx: Tx, id: string, now: Millis): Promise<boolean> =>
  (await tx.run(sql`UPDATE operator_device SET revoked_at = ${now} WHERE id = ${id} AND revoked_at IS NULL`)) > 0

/** Record a nonce. Returns false if the device has used it before. */
export const insertNonce = async (
  tx: Tx,
  { deviceId, nonce, now }: { deviceId: string; nonce: string; now: Millis },
): Promise<boolean> =>
  (await tx.run(sql`
    INSERT INTO operator_nonce (device_id, nonce, seen_at) VALUES (${deviceId}, ${nonce}, ${now})
    ON CONFLICT (device_id, nonce) DO NOTHING`)) > 0

/** Delete at most `limit` old nonces. Returns how many were deleted. */
export const deleteNonces = (tx: Tx, { seenBefore, limit }: { seenBefore: Millis; limit: number }): Promise<number> =>
  tx.run(sql`
    DELETE FROM operator_nonce WHERE (device_id, nonce) IN
      (SELECT device_id, nonce FROM operator_nonce WHERE seen_at < ${seenBefore} LIMIT ${limit})`)

export async function insertPairingCode(
  tx: Tx,
  { codeHash, expiresAt }: { codeHash: string; expiresAt: Millis },
): Promise<void> {
  await tx.run(sql`INSERT INTO operator_pairing_code (code_hash, expires_at) VALUES (${codeHash}, ${expiresAt})`)
}

/** Use up a pairing code. Returns false if it is unknown, used or expired. */
export const usePairingCode = async (tx: Tx, codeHash: string, now: Millis): Promise<boolean> =>
  (await tx.run(sql`
    UPDATE operator_pairing_code SET used_at = ${now}
    WHERE code_hash = ${codeHash} AND used_at IS NULL AND expires_at > ${now}`)) > 0

export const deletePairingCodes = (tx: Tx, expiredBefore: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM operator_pairing_code WHERE expires_at < ${expiredBefore}`)
