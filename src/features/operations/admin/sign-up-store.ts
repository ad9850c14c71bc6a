/** SQL about the accounts made in a period. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { DidPlace } from '../../../http/paged-list.ts'
import { sql, sqlAnd, type Reader, type Sql } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { recordTotals } from '../../data/repo/repo.ts'

/** From one instant, included, to another, excluded. */
export interface Window {
  from: Millis
  until: Millis
}

export interface SignUpRow extends DidPlace {
  handle: string | null
  /** The part of the address after `@`; null without an address. */
  email: string | null
  deactivatedAt: Millis | null
  takedownRef: string | null
  /** The role of an account that operates the server, which is left alone. */
  role: string | null
  records: number
  blobs: number
  /** 1 if the account is known to have moved here from another server, otherwise 0. */
  arrived: number
}

const columns = sql`account.did AS did, handle, email, account.created_at AS "createdAt", deactivated_at AS "deactivatedAt",
  takedown_ref AS "takedownRef", (SELECT role FROM operator_role WHERE operator_role.did = account.did) AS role,
  ${recordTotals.within(sql`account.did`)} AS records,
  (SELECT count(*) FROM blob WHERE blob.did = account.did) AS blobs,
  CASE WHEN EXISTS (SELECT 1 FROM account_event WHERE account_event.did = account.did AND event = 'arrived')
    THEN 1 ELSE 0 END AS arrived`

const within = ({ from, until }: Window): Sql => sql`account.created_at >= ${from} AND account.created_at < ${until}`

/** Returns at most `limit` accounts in the order of their creation, after a place. */
export function listSignUps(
  reader: Reader,
  window: Window,
  after: DidPlace | null,
  limit: number,
): Promise<SignUpRow[]> {
  const conditions = [within(window)]
  if (after !== null) conditions.push(sql`(account.created_at, account.did) > (${after.createdAt}, ${after.did})`)
  return reader.all(sql`
    SELECT ${columns} FROM account WHERE ${sqlAnd(conditions)} ORDER BY account.created_at, account.did LIMIT ${limit}`)
}

/** Returns null unless the account was made in the period. */
export const findSignUp = (reader: Reader, window: Window, did: Did): Promise<SignUpRow | null> =>
  reader.get(sql`SELECT ${columns} FROM account WHERE account.did = ${did} AND ${within(window)}`)

export const countSignUps = async (reader: Reader, window: Window): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM account WHERE ${within(window)}`))!.count

/** Returns how many accounts were made in each hour of the period, oldest first, without empty hours. */
export async function signUpsByHour(reader: Reader, window: Window): Promise<{ hour: Millis; count: number }[]> {
  const rows = await reader.all<{ hour: number; count: number }>(sql`
    SELECT account.created_at / ${HOUR_MILLIS} AS hour, count(*) AS count FROM account
    WHERE ${within(window)} GROUP BY 1 ORDER BY 1`)
  return rows.map(({ hour, count }) => ({ hour: hour * HOUR_MILLIS, count }))
}
