/** SQL of the `device` table. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface Device {
  id: string
  /** The id of a pending account, or the DID of the account that was transferred to the device. */
  owner: string
  tokenHash: string
  /** As the wallet spells it. */
  publicKey: string
  platform: string
  /** The wallet that asked for the token, such as `Holdfast wallet on Linux`; null if unknown. */
  openedWith: string | null
  createdAt: Millis
  /** When its token was last used, to the hour; null if unknown. */
  usedAt: Millis | null
  revokedAt: Millis | null
}

const columns = sql`id, owner, token_hash AS "tokenHash", public_key AS "publicKey", platform, opened_with AS "openedWith", created_at AS "createdAt", used_at AS "usedAt", revoked_at AS "revokedAt"`

export const insertDevice = (
  tx: Tx,
  { id, owner, tokenHash, publicKey, platform, openedWith, createdAt }: Omit<Device, 'usedAt' | 'revokedAt'>,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO device (id, owner, token_hash, public_key, platform, opened_with, created_at)
    VALUES (${id}, ${owner}, ${tokenHash}, ${publicKey}, ${platform}, ${openedWith}, ${createdAt})`)

/** Returns the device that holds the token; null if it is unknown or revoked. */
export const findDeviceByToken = (reader: Reader, tokenHash: string): Promise<Device | null> =>
  reader.get(sql`SELECT ${columns} FROM device WHERE token_hash = ${tokenHash} AND revoked_at IS NULL`)

export const noteDeviceUse = (writer: Writer, id: string, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE device SET used_at = ${now} WHERE id = ${id}`)

/** Returns the devices of an owner that are not revoked, newest first. */
export const devicesOf = (reader: Reader, owner: string): Promise<Device[]> =>
  reader.all(
    sql`SELECT ${columns} FROM device WHERE owner = ${owner} AND revoked_at IS NULL ORDER BY created_at DESC, id`,
  )

/** Revoke the devices of an owner, except the one with the id `except`. Returns how many were revoked. */
export const revokeDevices = (
  tx: Tx,
  owner: string,
  { except = '', now }: { except?: string; now: Millis },
): Promise<number> =>
  tx.run(sql`UPDATE device SET revoked_at = ${now} WHERE owner = ${owner} AND id <> ${except} AND revoked_at IS NULL`)

/** Returns 0 if the owner has no such device, or it was revoked before. */
export const revokeDevice = (tx: Tx, owner: string, id: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE device SET revoked_at = ${now} WHERE owner = ${owner} AND id = ${id} AND revoked_at IS NULL`)

export const deleteDevicesRevokedBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM device WHERE revoked_at < ${instant}`)

export const deleteDevicesOf = (tx: Tx, owner: string): Promise<number> =>
  tx.run(sql`DELETE FROM device WHERE owner = ${owner}`)
