/** SQL of the `push_registration` table. */
import { sql, sqlList, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** Who asked for pushes: an account, or the operators, whose devices are all in one list. */
export type RegistrationOwner = Did | 'operators'

export interface PushRegistration {
  owner: RegistrationOwner
  /** The id that the device gives itself; unique for the owner. */
  deviceId: string
  /** A key of P-256 as a did:key. */
  publicKey: string
  /** Hexadecimal, in lower case. */
  token: string
  topic: string
  /** Whether pushes wake the device without content. */
  isPing: boolean
  /** Null until the relay has assigned a handle. */
  handle: string | null
  /** When a replacement was last requested because the relay did not know the handle. */
  renewedAt: Millis | null
  registeredAt: Millis
  /** When the relay last took a push for it; null if it has not taken any since this is recorded. */
  pushedAt: Millis | null
}

export type RegistrationKey = Pick<PushRegistration, 'owner' | 'deviceId'>

type Row = Omit<PushRegistration, 'isPing'> & { isPing: number }

const columns = sql`owner, device_id AS "deviceId", public_key AS "publicKey", token, topic, is_ping AS "isPing", handle, renewed_at AS "renewedAt", registered_at AS "registeredAt", pushed_at AS "pushedAt"`

const fromRow = (row: Row): PushRegistration => ({ ...row, isPing: row.isPing === 1 })

const withKey = ({ owner, deviceId }: RegistrationKey) => sql`owner = ${owner} AND device_id = ${deviceId}`

/** Returns the devices of an owner, the one that registered longest ago first. */
export const registrationsOf = async (reader: Reader, owner: RegistrationOwner): Promise<PushRegistration[]> =>
  (
    await reader.all<Row>(
      sql`SELECT ${columns} FROM push_registration WHERE owner = ${owner} ORDER BY registered_at, device_id`,
    )
  ).map(fromRow)

export async function findRegistration(reader: Reader, key: RegistrationKey): Promise<PushRegistration | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM push_registration WHERE ${withKey(key)}`)
  return row && fromRow(row)
}

/**
 * Returns the devices that a push can reach: those with a handle, and those for which a handle was requested after the
 * given time.
 */
export const reachableDevices = async (
  reader: Reader,
  owner: RegistrationOwner,
  orderedAfter: Millis,
): Promise<PushRegistration[]> =>
  (await registrationsOf(reader, owner)).filter(
    ({ handle, renewedAt, registeredAt }) => handle !== null || (renewedAt ?? registeredAt) > orderedAfter,
  )

/** Insert a registration, or replace that of the same device, without a handle. */
export const putRegistration = (
  tx: Tx,
  {
    owner,
    deviceId,
    publicKey,
    token,
    topic,
    isPing,
    registeredAt,
  }: Omit<PushRegistration, 'handle' | 'renewedAt' | 'pushedAt'>,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO push_registration (owner, device_id, public_key, token, topic, is_ping, registered_at)
    VALUES (${owner}, ${deviceId}, ${publicKey}, ${token}, ${topic}, ${isPing ? 1 : 0}, ${registeredAt})
    ON CONFLICT (owner, device_id) DO UPDATE SET
      public_key = excluded.public_key, token = excluded.token, topic = excluded.topic, is_ping = excluded.is_ping,
      registered_at = excluded.registered_at, handle = NULL, renewed_at = NULL, pushed_at = NULL`)

export const deleteRegistrations = (tx: Tx, owner: RegistrationOwner, deviceIds: readonly string[]): Promise<number> =>
  tx.run(sql`DELETE FROM push_registration WHERE owner = ${owner} AND device_id IN ${sqlList(deviceIds)}`)

export const isTokenRegistered = async (reader: Reader, token: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM push_registration WHERE token = ${token} LIMIT 1`)) !== null

/** Whether a device with this token still waits for a handle. */
export const needsHandle = async (reader: Reader, token: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM push_registration WHERE token = ${token} AND handle IS NULL LIMIT 1`)) !== null

export const isHandleInUse = async (reader: Reader, handle: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM push_registration WHERE handle = ${handle} LIMIT 1`)) !== null

/** Give every registration with this token its handle. Returns how many there are. */
export const setHandle = (tx: Tx, token: string, handle: string): Promise<number> =>
  tx.run(sql`UPDATE push_registration SET handle = ${handle} WHERE token = ${token}`)

/** Forget the handle of a token, in every registration that has the token. */
export const clearHandle = (tx: Tx, token: string): Promise<number> =>
  tx.run(sql`UPDATE push_registration SET handle = NULL WHERE token = ${token}`)

export const noteDelivery = (writer: Writer, key: RegistrationKey, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE push_registration SET pushed_at = ${now} WHERE ${withKey(key)}`)

/** Note that a replacement handle is requested. */
export const updateRenewed = (tx: Tx, key: RegistrationKey, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE push_registration SET renewed_at = ${now} WHERE ${withKey(key)}`)
