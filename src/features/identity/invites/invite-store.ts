/** SQL of the `invite_code` and `invite_use` tables. */
import { sql, sqlList, sqlRows, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import { parseDid, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'

export interface InviteCode {
  code: string
  /** Total number of uses allowed. */
  available: number
  disabled: boolean
  /** A DID, or `admin`. */
  forAccount: string
  createdBy: string
  createdAt: Millis
  /** Newest first. */
  uses: { usedBy: InviteUser; usedAt: Millis }[]
}

/** An account, by its DID, or a pending account, by its id. */
type InviteUser = string

export type NewCode = Omit<InviteCode, 'uses'>
type Row = Omit<NewCode, 'disabled'> & { disabled: number }

const columns = sql`c.code, available_uses AS available, disabled, for_account AS "forAccount", created_by AS "createdBy", created_at AS "createdAt"`

export async function insertCodes(tx: Tx, codes: readonly NewCode[]): Promise<void> {
  if (codes.length === 0) return
  const rows = codes.map(({ code, available, disabled, forAccount, createdBy, createdAt }) => [
    code,
    available,
    disabled ? 1 : 0,
    forAccount,
    createdBy,
    createdAt,
  ])
  await tx.run(
    sql`INSERT INTO invite_code (code, available_uses, disabled, for_account, created_by, created_at) VALUES ${sqlRows(rows)}`,
  )
}

/** Store codes with their uses as another server had them. Codes that already exist here stay unchanged. */
export async function keepInvites(tx: Tx, codes: readonly InviteCode[]): Promise<void> {
  for (const { code, available, disabled, forAccount, createdBy, createdAt, uses } of codes) {
    await tx.run(sql`
      INSERT INTO invite_code (code, available_uses, disabled, for_account, created_by, created_at)
      VALUES (${code}, ${available}, ${disabled ? 1 : 0}, ${forAccount}, ${createdBy}, ${createdAt}) ON CONFLICT (code) DO NOTHING`)
    for (const { usedBy, usedAt } of uses)
      await tx.run(sql`
        INSERT INTO invite_use (code, used_by, used_at) VALUES (${code}, ${usedBy}, ${usedAt})
        ON CONFLICT (code, used_by) DO NOTHING`)
  }
}

/** Uses, including those of sign-ups in progress. */
const usesAt = (now: Millis) => sql`(SELECT COUNT(*) FROM invite_use u WHERE u.code = c.code)
  + (SELECT COUNT(*) FROM name_claim n WHERE n.invite_code = c.code AND n.held_until > ${now})`

/**
 * Whether the code can be used once more: it exists, is neither disabled nor expired, its owner is not taken down, and
 * its uses, including those of sign-ups in progress, are fewer than allowed. A code that is bound to a pending account
 * can be used only if `boundTo` is the id of that account. A code for a domain can be used only for a handle under that
 * domain, so not if `handle` is null.
 */
export async function isInviteUsable(
  reader: Reader,
  code: string,
  { handle, now, boundTo = '' }: { handle: Handle | null; now: Millis; boundTo?: string },
): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 FROM invite_code c
    WHERE code = ${code} AND COALESCE(bound_to, '') = ${boundTo} AND disabled = 0 AND (expires_at IS NULL OR expires_at > ${now})
      AND (handle_domain IS NULL OR CAST(${handle} AS TEXT) LIKE '%.' || handle_domain)
      AND NOT EXISTS (SELECT 1 FROM account a WHERE a.did = c.for_account AND a.takedown_ref IS NOT NULL)
      AND ${usesAt(now)} < available_uses`)
  return row !== null
}

/** Whether the code exists and all its uses are spent. */
export const isInviteUsedUp = async (reader: Reader, code: string, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM invite_code c WHERE code = ${code} AND ${usesAt(now)} >= available_uses`)) !==
  null

/** Returns the id of the pending account that the code is bound to, or null. */
export const inviteBoundTo = async (reader: Reader, code: string): Promise<string | null> =>
  (
    await reader.get<{ boundTo: string | null }>(
      sql`SELECT bound_to AS "boundTo" FROM invite_code WHERE code = ${code}`,
    )
  )?.boundTo ?? null

export async function useInvite(tx: Tx, code: string, usedBy: InviteUser, usedAt: Millis): Promise<void> {
  await tx.run(sql`INSERT INTO invite_use (code, used_by, used_at) VALUES (${code}, ${usedBy}, ${usedAt})`)
}

/** Whether the account, or the pending account, has used the code. */
export const hasUsedInvite = async (reader: Reader, code: string, usedBy: InviteUser): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM invite_use WHERE code = ${code} AND used_by = ${usedBy}`)) !== null

/** Record the uses by a pending account as uses by the account that it became. */
export const passOnInvites = (tx: Tx, id: string, did: Did): Promise<number> =>
  tx.run(sql`UPDATE invite_use SET used_by = ${did} WHERE used_by = ${id}`)

/** Returns the codes of an account, newest first. */
export const listCodesOf = (reader: Reader, forAccount: string): Promise<InviteCode[]> =>
  listCodes(reader, sql`FROM invite_code c WHERE for_account = ${forAccount} ORDER BY created_at DESC, c.code DESC`)

/** Returns the code with which an account signed up, or null if it used none. */
export const findCodeUsedBy = async (reader: Reader, did: Did): Promise<InviteCode | null> =>
  (
    await listCodes(
      reader,
      sql`FROM invite_code c WHERE c.code IN (SELECT code FROM invite_use WHERE used_by = ${did}) LIMIT 1`,
    )
  )[0] ?? null

/** Position at which a page ended: the sort value and the code. */
export interface CodePlace {
  value: number
  code: string
}

const uses = sql`(SELECT COUNT(*) FROM invite_use u WHERE u.code = c.code)`
const sortedBy = { recent: sql`created_at`, usage: uses }
export type CodeSort = keyof typeof sortedBy

/** Returns a page of all codes, newest or most used first, and its end; `end` is null if the page is empty. */
export async function listCodePage(
  reader: Reader,
  sort: CodeSort,
  after: CodePlace | null,
  limit: number,
): Promise<{ codes: InviteCode[]; end: CodePlace | null }> {
  const by = sortedBy[sort]
  const condition =
    after === null ? sql`1 = 1` : sql`(${by} < ${after.value} OR (${by} = ${after.value} AND c.code < ${after.code}))`
  const codes = await listCodes(
    reader,
    sql`FROM invite_code c WHERE ${condition} ORDER BY ${by} DESC, c.code DESC LIMIT ${limit}`,
  )
  const last = codes.at(-1)
  return { codes, end: last ? { value: sort === 'recent' ? last.createdAt : last.uses.length, code: last.code } : null }
}

async function listCodes(reader: Reader, from: Sql): Promise<InviteCode[]> {
  const rows = await reader.all<Row>(sql`SELECT ${columns} ${from}`)
  const used = await reader.all<{ code: string; usedBy: InviteUser; usedAt: Millis }>(
    sql`SELECT code, used_by AS "usedBy", used_at AS "usedAt" FROM invite_use WHERE code IN ${sqlList(rows.map(({ code }) => code))} ORDER BY used_at DESC, used_by`,
  )
  const byCode = Map.groupBy(used, ({ code }) => code)
  return rows.map((row) => ({
    ...row,
    disabled: row.disabled === 1,
    uses: (byCode.get(row.code) ?? []).map(({ usedBy, usedAt }) => ({ usedBy, usedAt })),
  }))
}

/**
 * Disable codes, and all codes of some accounts. Returns how many codes of each account this disabled; null stands for
 * codes of no account.
 */
export async function disableCodes(
  tx: Tx,
  { codes, accounts }: { codes: readonly string[]; accounts: readonly string[] },
): Promise<Map<Did | null, number>> {
  const rows = await tx.all<{ forAccount: string }>(sql`
    UPDATE invite_code SET disabled = 1
    WHERE disabled = 0 AND (code IN ${sqlList(codes)} OR for_account IN ${sqlList(accounts)})
    RETURNING for_account AS "forAccount"`)
  const counts = new Map<Did | null, number>()
  for (const { forAccount } of rows) {
    const owner = parseDid(forAccount)
    counts.set(owner, (counts.get(owner) ?? 0) + 1)
  }
  return counts
}

/** Delete the codes that belong to the account. Codes that the account used still count as used, without its name. */
export async function forgetInvites(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`
    UPDATE invite_code SET available_uses = available_uses - 1 WHERE code IN (SELECT code FROM invite_use WHERE used_by = ${did})`)
  await tx.run(
    sql`DELETE FROM invite_use WHERE used_by = ${did} OR code IN (SELECT code FROM invite_code WHERE for_account = ${did})`,
  )
  await tx.run(sql`DELETE FROM invite_code WHERE for_account = ${did}`)
}
