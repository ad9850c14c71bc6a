/** SQL of the tables `certificate`, `certificate_order` and `name_order`. */
import { sql, sqlList, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface StoredCertificate {
  /** The names that it covers, separated by spaces. */
  names: string
  wrapped: string
  issuedAt: Millis
  notAfter: Millis
  renewAt: Millis
  /** When to ask the authority again about its renewal. */
  askAt: Millis
}

const certificateColumns = sql`names, wrapped, issued_at AS "issuedAt", not_after AS "notAfter", renew_at AS "renewAt", ask_at AS "askAt"`

/** Returns certificates that are valid at a time: those with the names in `first`, and then the newest. */
export const listCertificates = (
  reader: Reader,
  { now, first, limit }: { now: Millis; first: readonly string[]; limit: number },
): Promise<StoredCertificate[]> =>
  reader.all(sql`
    SELECT ${certificateColumns} FROM certificate WHERE not_after > ${now}
    ORDER BY CASE WHEN names IN ${sqlList(first)} THEN 0 ELSE 1 END, issued_at DESC, names LIMIT ${limit}`)

export const findCertificate = (reader: Reader, names: string): Promise<StoredCertificate | null> =>
  reader.get(sql`SELECT ${certificateColumns} FROM certificate WHERE names = ${names}`)

/** Returns when to renew each certificate that is valid at a time. */
export const listRenewals = (
  reader: Reader,
  now: Millis,
): Promise<Pick<StoredCertificate, 'names' | 'renewAt' | 'notAfter'>[]> =>
  reader.all(sql`
    SELECT names, renew_at AS "renewAt", not_after AS "notAfter" FROM certificate WHERE not_after > ${now} ORDER BY names`)

/** Returns the certificates about whose renewal to ask the authority. */
export const certificatesToAskAbout = (reader: Reader, now: Millis, limit: number): Promise<StoredCertificate[]> =>
  reader.all(sql`
    SELECT ${certificateColumns} FROM certificate WHERE ask_at <= ${now} AND not_after > ${now} ORDER BY ask_at LIMIT ${limit}`)

export const putCertificate = (tx: Tx, row: StoredCertificate): Promise<number> =>
  tx.run(sql`
    INSERT INTO certificate (names, wrapped, issued_at, not_after, renew_at, ask_at)
    VALUES (${row.names}, ${row.wrapped}, ${row.issuedAt}, ${row.notAfter}, ${row.renewAt}, ${row.askAt})
    ON CONFLICT (names) DO UPDATE SET wrapped = excluded.wrapped, issued_at = excluded.issued_at,
      not_after = excluded.not_after, renew_at = excluded.renew_at, ask_at = excluded.ask_at`)

export const scheduleRenewal = (
  writer: Writer,
  { names, renewAt, askAt }: Pick<StoredCertificate, 'names' | 'renewAt' | 'askAt'>,
): Promise<number> =>
  writer.run(sql`UPDATE certificate SET renew_at = ${renewAt}, ask_at = ${askAt} WHERE names = ${names}`)

/** Returns the names of certificates that have expired at a time. */
export const expiredNames = async (reader: Reader, now: Millis): Promise<string[]> =>
  (await reader.all<{ names: string }>(sql`SELECT names FROM certificate WHERE not_after <= ${now}`)).map(
    ({ names }) => names,
  )

export const deleteCertificate = (writer: Writer, names: string): Promise<number> =>
  writer.run(sql`DELETE FROM certificate WHERE names = ${names}`)

/**
 * Returns a text that differs once the certificates have changed. It includes a sum that changes with every
 * certificate, because the newest time stays the same if the clock was set back.
 */
export async function stateOfCertificates(reader: Reader): Promise<string> {
  const row = await reader.get<{ count: number; times: number | null }>(
    sql`SELECT count(*) AS count, sum(issued_at) AS times FROM certificate`,
  )
  return `${row?.count} ${row?.times}`
}

export interface StoredOrder {
  names: string
  keyWrapped: string
  /** Null: the order was not placed, or has failed. */
  url: string | null
  placedAt: Millis | null
  nextAt: Millis
  /** Consecutive failures. */
  failures: number
  fault: string | null
  /** 1: there is a certificate for these names, valid or expired. */
  renews: number
}

const renews = sql`CASE WHEN EXISTS (SELECT 1 FROM certificate c WHERE c.names = o.names) THEN 1 ELSE 0 END AS renews`
const orderColumns = sql`names, key_wrapped AS "keyWrapped", url, placed_at AS "placedAt", next_at AS "nextAt", failures, fault, ${renews}`

/**
 * Returns orders to continue: those with the names in `first`, then those that are placed at the authority, then
 * renewals, then the rest, each group in the order in which they have waited. New names are last because anyone can
 * make some; they must not delay the others. An order that would wait until after `latest` is due: its time was set
 * while the clock was ahead.
 */
export const dueOrders = (
  reader: Reader,
  { now, latest, first, limit }: { now: Millis; latest: Millis; first: readonly string[]; limit: number },
): Promise<StoredOrder[]> =>
  reader.all(sql`
    SELECT ${orderColumns} FROM certificate_order o WHERE next_at <= ${now} OR next_at > ${latest}
    ORDER BY CASE
        WHEN names IN ${sqlList(first)} THEN 0
        WHEN url IS NOT NULL THEN 1
        WHEN EXISTS (SELECT 1 FROM certificate c WHERE c.names = o.names) THEN 2
        ELSE 3
      END, next_at, names LIMIT ${limit}`)

/** Returns the names of orders, and why they failed: first those with the names in `first`, then those due first. */
export const listOrders = (
  reader: Reader,
  { first, limit }: { first: readonly string[]; limit: number },
): Promise<Pick<StoredOrder, 'names' | 'url' | 'fault' | 'nextAt'>[]> =>
  reader.all(sql`
    SELECT names, url, fault, next_at AS "nextAt" FROM certificate_order
    ORDER BY CASE WHEN names IN ${sqlList(first)} THEN 0 ELSE 1 END, next_at, names LIMIT ${limit}`)

export async function countOrders(reader: Reader): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM certificate_order`)
  return Number(row?.count ?? 0)
}

export const insertOrder = (
  writer: Writer,
  { names, keyWrapped, nextAt }: Pick<StoredOrder, 'names' | 'keyWrapped' | 'nextAt'>,
): Promise<number> =>
  writer.run(sql`
    INSERT INTO certificate_order (names, key_wrapped, next_at) VALUES (${names}, ${keyWrapped}, ${nextAt})
    ON CONFLICT (names) DO NOTHING`)

export const noteOrderPlaced = (writer: Writer, names: string, url: string, placedAt: Millis): Promise<number> =>
  writer.run(sql`UPDATE certificate_order SET url = ${url}, placed_at = ${placedAt} WHERE names = ${names}`)

/** `ended`: the next try places another order. */
export const noteOrderFailed = (
  writer: Writer,
  names: string,
  { fault, nextAt, ended, limited }: { fault: string; nextAt: Millis; ended: boolean; limited: boolean },
): Promise<number> =>
  writer.run(sql`
    UPDATE certificate_order SET fault = ${fault}, next_at = ${nextAt}, failures = failures + 1, limited = ${limited ? 1 : 0},
      url = CASE WHEN ${ended ? 1 : 0} = 1 THEN NULL ELSE url END
    WHERE names = ${names}`)

export const postponeOrder = (writer: Writer, names: string, nextAt: Millis): Promise<number> =>
  writer.run(sql`UPDATE certificate_order SET next_at = ${nextAt} WHERE names = ${names}`)

export const deleteOrder = (writer: Writer, names: string): Promise<number> =>
  writer.run(sql`DELETE FROM certificate_order WHERE names = ${names}`)

/** Returns how many orders were placed between two times, whatever became of them. */
export async function ordersPlacedBetween(reader: Reader, since: Millis, now: Millis): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`
    SELECT (SELECT count(*) FROM certificate_order WHERE placed_at > ${since} AND placed_at <= ${now})
      + (SELECT count(*) FROM certificate WHERE issued_at > ${since} AND issued_at <= ${now}) AS count`)
  return Number(row?.count ?? 0)
}

/** Returns the orders that the authority has answered by asking for a pause. */
export const limitedOrders = (
  reader: Reader,
  { now, latest }: { now: Millis; latest: Millis },
): Promise<Pick<StoredOrder, 'names' | 'renews'>[]> =>
  reader.all(
    sql`SELECT names, ${renews} FROM certificate_order o WHERE limited = 1 AND next_at > ${now} AND next_at <= ${latest}`,
  )

interface NameOrder {
  did: Did
  names: string
  now: Millis
}

/** Note that an account causes the first order for a name. Returns 0 if it has caused `max` of them since a time. */
export const insertNameOrder = (
  tx: Tx,
  { did, names, now }: NameOrder,
  { since, max }: { since: Millis; max: number },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO name_order (did, names, ordered_at)
    SELECT ${did}, ${names}, CAST(${now} AS BIGINT) WHERE ${max} > (
      SELECT count(*) FROM name_order WHERE did = ${did} AND names <> ${names} AND ordered_at > ${since} AND ordered_at <= ${now})
    ON CONFLICT (did, names) DO UPDATE SET ordered_at = excluded.ordered_at`)

export const deleteNameOrders = (writer: Writer, until: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM name_order WHERE ordered_at <= ${until}`)

export const deleteNameOrdersOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM name_order WHERE did = ${did}`)
