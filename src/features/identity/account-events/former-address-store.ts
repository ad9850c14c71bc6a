/** SQL of the `former_address` table: the addresses that accounts had before. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

const KEPT_MILLIS = 30 * DAY_MILLIS
/**
 * Most former addresses of an account that get mails. They are the earliest ones, so that an attacker cannot crowd out
 * the holder's address by changing the address repeatedly.
 */
const MAX_MAILED = 5

/** Keep an address that is being replaced. */
export const keepFormerAddress = (tx: Tx, did: Did, address: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO former_address (did, address, first_replaced_at, replaced_at) VALUES (${did}, ${address}, ${now}, ${now})
    ON CONFLICT (did, address) DO UPDATE SET replaced_at = ${now}`)

/** Returns the addresses that the account had within the last 30 days, without its present one. */
export async function formerAddresses(
  reader: Reader,
  did: Did,
  present: string | null,
  now: Millis,
): Promise<string[]> {
  const rows = await reader.all<{ address: string }>(sql`
    SELECT address FROM former_address
    WHERE did = ${did} AND replaced_at > ${now - KEPT_MILLIS} AND address <> ${present ?? ''}
    ORDER BY first_replaced_at, address LIMIT ${MAX_MAILED}`)
  return rows.map(({ address }) => address)
}

export const deleteFormerAddressesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM former_address WHERE did = ${did}`)

export const deleteOldAddresses = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM former_address WHERE replaced_at <= ${now - KEPT_MILLIS}`)
