/** Rows of `invite_code` and `invite_use`. */
import { sql, sqlList, sqlRows, type Reader, type Sql, type Tx } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

export interface InviteCode {
  code: string
  /** How often it may be used in all. */
  available: number
  disabled: boolean
  /** A DID, or `admin`. */
  forAccount: string
  createdBy: string
  createdAt: Millis
  /** The newest first. */
  uses: { usedBy: Did; usedAt: Millis }[]
}

export type NewCode = Omit<InviteCode, 'uses'>
type Row = Omit<NewCode, 'disabled'> & { disabled: number }

const columns = sql`c.code, available_uses AS available, disabled, for_account AS "forAccount", created_by AS "createdBy", created_at AS "createdAt"`

export async function insertCodes(tx: Tx, codes: readonly NewCode[]): Promise<void> {
  if (codes.length === 0) return
  const rows = codes.map(({ code, available, disabled, forAccount, createdBy, createdAt }) => [code, available, disabled ? 1 : 0, forAccount, createdBy, createdAt])
  await tx.run(sql`INSERT INTO invite_code (code, available_uses, disabled, for_account, created_by, created_at) VALUES ${sqlRows(rows)}`)
}

/**
 * Whether one more may use the code: it exists, is neither disabled nor past its end, its owner is not taken down, and
 * fewer have used it, or are about to, than it is for.
 */
export async function isInviteUsable(reader: Reader, code: string, now: Millis): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 FROM invite_code c
    WHERE code = ${code} AND disabled = 0 AND (expires_at IS NULL OR expires_at > ${now})
      AND NOT EXISTS (SELECT 1 FROM account a WHERE a.did = c.for_account AND a.takedown_ref IS NOT NULL)
      AND (SELECT COUNT(*) FROM invite_use u WHERE u.code = c.code) + (SELECT COUNT(*) FROM name_claim n WHERE n.invite_code = c.code AND n.held_until > ${now}) < available_uses`)
  return row !== null
}

export async function useInvite(tx: Tx, code: string, usedBy: Did, usedAt: Millis): Promise<void> {
  await tx.run(sql`INSERT INTO invite_use (code, used_by, used_at) VALUES (${code}, ${usedBy}, ${usedAt})`)
}

/** Codes of an account, the newest first. */
export const listCodesOf = (reader: Reader, forAccount: string): Promise<InviteCode[]> =>
  listCodes(reader, sql`FROM invite_code c WHERE for_account = ${forAccount} ORDER BY created_at DESC, c.code DESC`)

/** The code with which an account signed up. */
export const findCodeUsedBy = async (reader: Reader, did: Did): Promise<InviteCode | null> =>
  (await listCodes(reader, sql`FROM invite_code c WHERE c.code IN (SELECT code FROM invite_use WHERE used_by = ${did}) LIMIT 1`))[0] ?? null

/** Where a page ended: the value that it is sorted by, and the code. */
export interface CodePlace {
  value: number
  code: string
}

const uses = sql`(SELECT COUNT(*) FROM invite_use u WHERE u.code = c.code)`
const sortedBy = { recent: sql`created_at`, usage: uses }
export type CodeSort = keyof typeof sortedBy

/** A page of all codes, the newest or the most used first, and where it ended. */
export async function listCodePage(reader: Reader, sort: CodeSort, after: CodePlace | null, limit: number): Promise<{ codes: InviteCode[]; end: CodePlace | null }> {
  const by = sortedBy[sort]
  const condition = after === null ? sql`1 = 1` : sql`(${by} < ${after.value} OR (${by} = ${after.value} AND c.code < ${after.code}))`
  const codes = await listCodes(reader, sql`FROM invite_code c WHERE ${condition} ORDER BY ${by} DESC, c.code DESC LIMIT ${limit}`)
  const last = codes.at(-1)
  return { codes, end: last ? { value: sort === 'recent' ? last.createdAt : last.uses.length, code: last.code } : null }
}

async function listCodes(reader: Reader, from: Sql): Promise<InviteCode[]> {
  const rows = await reader.all<Row>(sql`SELECT ${columns} ${from}`)
  const used = await reader.all<{ code: string; usedBy: Did; usedAt: Millis }>(
    sql`SELECT code, used_by AS "usedBy", used_at AS "usedAt" FROM invite_use WHERE code IN ${sqlList(rows.map(({ code }) => code))} ORDER BY used_at DESC, used_by`,
  )
  const byCode = Map.groupBy(used, ({ code }) => code)
  return rows.map((row) => ({
    ...row,
    disabled: row.disabled === 1,
    uses: (byCode.get(row.code) ?? []).map(({ usedBy, usedAt }) => ({ usedBy, usedAt })),
  }))
}

export const disableCodes = (tx: Tx, codes: readonly string[]): Promise<number> => tx.run(sql`UPDATE invite_code SET disabled = 1 WHERE code IN ${sqlList(codes)}`)
export const disableCodesOf = (tx: Tx, accounts: readonly string[]): Promise<number> =>
  tx.run(sql`UPDATE invite_code SET disabled = 1 WHERE for_account IN ${sqlList(accounts)}`)

/** The account's codes go; a code that it used stays used, by nobody in particular. */
export async function forgetInvites(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`
    UPDATE invite_code SET available_uses = available_uses - 1 WHERE code IN (SELECT code FROM invite_use WHERE used_by = ${did})`)
  await tx.run(sql`DELETE FROM invite_use WHERE used_by = ${did} OR code IN (SELECT code FROM invite_code WHERE for_account = ${did})`)
  await tx.run(sql`DELETE FROM invite_code WHERE for_account = ${did}`)
}
