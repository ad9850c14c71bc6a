/** SQL of the `transfer` table. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'

/** `pending` and `accepted` transfers are running; the other states are final. */
export type TransferStatus = 'pending' | 'accepted' | 'complete' | 'expired' | 'cancelled'

export interface Transfer {
  id: string
  did: Did
  status: TransferStatus
  createdAt: Millis
  expiresAt: Millis
  acceptedAt: Millis | null
  /** The device that accepted the transfer. */
  deviceId: string | null
}

const columns = sql`id, did, status, created_at AS "createdAt", expires_at AS "expiresAt", accepted_at AS "acceptedAt", device_id AS "deviceId"`

export const findTransfer = (reader: Reader, id: string): Promise<Transfer | null> =>
  reader.get(sql`SELECT ${columns} FROM transfer WHERE id = ${id}`)

/** Returns the running transfer with this code, expired or not. */
export const findTransferByCode = (reader: Reader, code: string): Promise<Transfer | null> =>
  reader.get(sql`SELECT ${columns} FROM transfer WHERE code = ${code}`)

/** Returns the transfer of an account that has not ended, expired or not. */
export const findUnendedTransfer = (reader: Reader, did: Did): Promise<Transfer | null> =>
  reader.get(sql`SELECT ${columns} FROM transfer WHERE did = ${did} AND code IS NOT NULL`)

/** Returns 0 if the code is in use. */
export const insertTransfer = (
  tx: Tx,
  { id, did, code, createdAt, expiresAt }: Pick<Transfer, 'id' | 'did' | 'createdAt' | 'expiresAt'> & { code: string },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO transfer (id, did, code, status, created_at, expires_at)
    VALUES (${id}, ${did}, ${code}, 'pending', ${createdAt}, ${expiresAt}) ON CONFLICT (code) DO NOTHING`)

/** Note that a device accepted a pending transfer. */
export const updateAccepted = (tx: Tx, id: string, deviceId: string, acceptedAt: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE transfer SET status = 'accepted', device_id = ${deviceId}, accepted_at = ${acceptedAt} WHERE id = ${id}`,
  )

/** End a transfer. Its code is free again. */
export const updateEnded = (
  tx: Tx,
  id: string,
  status: 'complete' | 'expired' | 'cancelled',
  endedAt: Millis,
): Promise<number> =>
  tx.run(sql`UPDATE transfer SET status = ${status}, code = NULL, ended_at = ${endedAt} WHERE id = ${id}`)

export const deleteTransfersOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM transfer WHERE did = ${did}`)

export const deleteTransfersEndedBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM transfer WHERE ended_at < ${instant}`)

export interface ListedTransfer extends Transfer {
  /** Null if the account has none. */
  handle: Handle | null
  /** Null until a device accepts. */
  platform: string | null
}

/** Position in the list of transfers, newest first. */
export type TransferPlace = Pick<Transfer, 'createdAt' | 'id'>

/**
 * Returns transfers that are pending and have not expired, or accepted, after a place; from the newest if it is null.
 */
export function listTransfers(
  reader: Reader,
  after: TransferPlace | null,
  now: Millis,
  limit: number,
): Promise<ListedTransfer[]> {
  const place = after === null ? sql`1 = 1` : sql`(t.created_at, t.id) < (${after.createdAt}, ${after.id})`
  return reader.all(sql`
    SELECT t.id, t.did, t.status, t.created_at AS "createdAt", t.expires_at AS "expiresAt", t.accepted_at AS "acceptedAt",
      t.device_id AS "deviceId", a.handle, d.platform
    FROM transfer t LEFT JOIN account a ON a.did = t.did LEFT JOIN device d ON d.id = t.device_id
    WHERE t.code IS NOT NULL AND (t.status <> 'pending' OR t.expires_at > ${now}) AND ${place}
    ORDER BY t.created_at DESC, t.id DESC LIMIT ${limit}`)
}

/**
 * Returns transfers that have not ended: pending ones that expired by `now`, or end after `latestEnd`, and accepted
 * ones from before `acceptedBefore`.
 */
export const listOverdueTransfers = (
  reader: Reader,
  { now, latestEnd, acceptedBefore, limit }: { now: Millis; latestEnd: Millis; acceptedBefore: Millis; limit: number },
): Promise<Pick<Transfer, 'id'>[]> =>
  reader.all(sql`
    SELECT id FROM transfer
    WHERE code IS NOT NULL
      AND ((status = 'pending' AND (expires_at <= ${now} OR expires_at > ${latestEnd})) OR accepted_at < ${acceptedBefore})
    LIMIT ${limit}`)
