/** SQL of the `name_reservation` table: names that are kept for one owner until a time. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Handle, Millis } from '../../../protocol/identifiers.ts'

export interface Reservation {
  handle: Handle
  /** The id of a pending account, or the DID of an account. */
  owner: string
  /** Reserved together with the handle; null if none is. */
  email: string | null
  until: Millis
}

/**
 * Throws a unique violation if handle or address are already reserved, which the caller rules out in the same
 * transaction.
 */
export async function insertReservation(
  tx: Tx,
  { handle, owner, email, until }: Reservation,
  now: Millis,
): Promise<void> {
  await tx.run(
    sql`DELETE FROM name_reservation WHERE (handle = ${handle} OR email = ${email}) AND reserved_until <= ${now}`,
  )
  await tx.run(
    sql`INSERT INTO name_reservation (handle, owner, email, reserved_until) VALUES (${handle}, ${owner}, ${email}, ${until})`,
  )
}

/** Reserve the present handle of an account for it, for the time after the account gets another one. */
export const keepHandle = (tx: Tx, { handle, owner, until }: Omit<Reservation, 'email'>): Promise<number> =>
  tx.run(sql`
    INSERT INTO name_reservation (handle, owner, email, reserved_until) VALUES (${handle}, ${owner}, NULL, ${until})
    ON CONFLICT (handle) DO UPDATE SET owner = excluded.owner, email = NULL, reserved_until = excluded.reserved_until`)

/** Pass reservations on to another owner, without the email address. Returns 0 if nothing is reserved for `before`. */
export const passOnReservations = (
  tx: Tx,
  before: string,
  { owner, until }: Pick<Reservation, 'owner' | 'until'>,
): Promise<number> =>
  tx.run(
    sql`UPDATE name_reservation SET owner = ${owner}, email = NULL, reserved_until = ${until} WHERE owner = ${before}`,
  )

/** Set the end of all reservations of an owner. */
export const setReservedUntil = (tx: Tx, owner: string, until: Millis): Promise<number> =>
  tx.run(sql`UPDATE name_reservation SET reserved_until = ${until} WHERE owner = ${owner}`)

/** Returns the owner for whom the handle is reserved; null if it is not reserved. */
export const reservedFor = async (reader: Reader, handle: Handle, now: Millis): Promise<string | null> =>
  (
    await reader.get<{ owner: string }>(
      sql`SELECT owner FROM name_reservation WHERE handle = ${handle} AND reserved_until > ${now}`,
    )
  )?.owner ?? null

export const isEmailReserved = async (reader: Reader, email: string, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM name_reservation WHERE email = ${email} AND reserved_until > ${now}`)) !== null

export const deleteReservation = (tx: Tx, handle: Handle): Promise<number> =>
  tx.run(sql`DELETE FROM name_reservation WHERE handle = ${handle}`)
export const deleteReservationsOf = (tx: Tx, owner: string): Promise<number> =>
  tx.run(sql`DELETE FROM name_reservation WHERE owner = ${owner}`)
export const deleteReservationsBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM name_reservation WHERE reserved_until <= ${instant}`)
