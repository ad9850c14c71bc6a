/**
 * SQL of the tables `app_password` and `scoped_app_password`, which together hold the app passwords of an account. A
 * name may occur only once in the two: `createAppPassword` checks that.
 */
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { sql, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'

export interface AppPassword {
  name: string
  /** May use direct messages. */
  privileged: boolean
  /** May read and set the birth date. */
  personalDetails: boolean
  /** Everything that it may do, as scopes separated by spaces; null for an app password of the standard lexicon. */
  scope: string | null
  /** From this time on, neither the app password nor its sessions work; null if it never expires. */
  expiresAt: Millis | null
  createdAt: Millis
  /** When it last opened or extended a session, to the hour; null if it never did, as far as is known. */
  lastUsedAt: Millis | null
}

export type NewAppPassword = Omit<AppPassword, 'lastUsedAt'>

type Row = Omit<AppPassword, 'privileged' | 'personalDetails'> & { privileged: number; personalDetails: number }

const select = (condition: Sql) => sql`
  SELECT name, privileged, personal_details AS "personalDetails", NULL AS scope, NULL AS "expiresAt",
    created_at AS "createdAt", last_used_at AS "lastUsedAt"
  FROM app_password WHERE ${condition}
  UNION ALL
  SELECT name, 0, 0, scope, expires_at, created_at, last_used_at FROM scoped_app_password WHERE ${condition}
  ORDER BY "createdAt" DESC, name`

const fromRow = (row: Row): AppPassword => ({
  ...row,
  privileged: row.privileged === 1,
  personalDetails: row.personalDetails === 1,
})

/** Insert an app password. Throws a unique violation if the account has another one of this name in the same table. */
export async function insertAppPassword(
  tx: Tx,
  did: Did,
  { name, privileged, personalDetails, scope, expiresAt, createdAt }: NewAppPassword,
  hash: string,
): Promise<void> {
  await tx.run(
    scope === null
      ? sql`
    INSERT INTO app_password (did, name, password_hash, privileged, personal_details, created_at)
    VALUES (${did}, ${name}, ${hash}, ${privileged ? 1 : 0}, ${personalDetails ? 1 : 0}, ${createdAt})`
      : sql`
    INSERT INTO scoped_app_password (did, name, password_hash, scope, expires_at, created_at)
    VALUES (${did}, ${name}, ${hash}, ${scope}, ${expiresAt}, ${createdAt})`,
  )
}

/** Returns the account's app passwords, newest first, including expired ones. */
export const listAppPasswords = async (reader: Reader, did: Did): Promise<AppPassword[]> =>
  (await reader.all<Row>(select(sql`did = ${did}`))).map(fromRow)

/**
 * Returns the app password, or null. A server of the previous version, which knows only one of the tables, may use a
 * name a second time. The name then means the app password with scopes, so that no session gets more access than it was
 * opened with.
 */
export async function findAppPassword(
  reader: Reader,
  did: Did,
  by: { name: string } | { hash: string },
): Promise<AppPassword | null> {
  const rows = await reader.all<Row>(
    select('name' in by ? sql`did = ${did} AND name = ${by.name}` : sql`did = ${did} AND password_hash = ${by.hash}`),
  )
  const row = rows.find(({ scope }) => scope !== null) ?? rows[0]
  return row === undefined ? null : fromRow(row)
}

/** Replace the hash of the same app password. Returns 0 if none of the account has the hash `before`. */
export const replaceAppPasswordHash = (tx: Tx, did: Did, before: string, hash: string): Promise<number> =>
  tx.run(sql`UPDATE app_password SET password_hash = ${hash} WHERE did = ${did} AND password_hash = ${before}`)

export const setLastUse = (tx: Tx, did: Did, { name, scope }: AppPassword, now: Millis): Promise<number> =>
  tx.run(
    scope === null
      ? sql`UPDATE app_password SET last_used_at = ${now} WHERE did = ${did} AND name = ${name}`
      : sql`UPDATE scoped_app_password SET last_used_at = ${now} WHERE did = ${did} AND name = ${name}`,
  )

export const deleteAppPassword = async (tx: Tx, did: Did, name: string): Promise<number> =>
  (await tx.run(sql`DELETE FROM app_password WHERE did = ${did} AND name = ${name}`)) +
  (await tx.run(sql`DELETE FROM scoped_app_password WHERE did = ${did} AND name = ${name}`))
export const deleteAppPasswordsOf = async (tx: Tx, did: Did): Promise<number> =>
  (await tx.run(sql`DELETE FROM app_password WHERE did = ${did}`)) +
  (await tx.run(sql`DELETE FROM scoped_app_password WHERE did = ${did}`))
