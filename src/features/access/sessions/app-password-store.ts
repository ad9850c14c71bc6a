/** SQL of the `app_password` table. */
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { sql, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'

export interface AppPassword {
  name: string
  /** May use direct messages. */
  privileged: boolean
  /** May read and set the birth date. */
  personalDetails: boolean
  createdAt: Millis
}

type Row = Omit<AppPassword, 'privileged' | 'personalDetails'> & { privileged: number; personalDetails: number }

const select = (condition: Sql) => sql`
  SELECT name, privileged, personal_details AS "personalDetails", created_at AS "createdAt" FROM app_password WHERE ${condition}
  ORDER BY created_at DESC, name`

const fromRow = (row: Row): AppPassword => ({
  ...row,
  privileged: row.privileged === 1,
  personalDetails: row.personalDetails === 1,
})

/** Insert an app password. Throws a unique violation if the account has one with that name. */
export async function insertAppPassword(
  tx: Tx,
  did: Did,
  { name, privileged, personalDetails, createdAt }: AppPassword,
  hash: string,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO app_password (did, name, password_hash, privileged, personal_details, created_at)
    VALUES (${did}, ${name}, ${hash}, ${privileged ? 1 : 0}, ${personalDetails ? 1 : 0}, ${createdAt})`)
}

/** Returns the account's app passwords, newest first. */
export const listAppPasswords = async (reader: Reader, did: Did): Promise<AppPassword[]> =>
  (await reader.all<Row>(select(sql`did = ${did}`))).map(fromRow)

export async function findAppPassword(
  reader: Reader,
  did: Did,
  by: { name: string } | { hash: string },
): Promise<AppPassword | null> {
  const row = await reader.get<Row>(
    select('name' in by ? sql`did = ${did} AND name = ${by.name}` : sql`did = ${did} AND password_hash = ${by.hash}`),
  )
  return row && fromRow(row)
}

/** Replace the hash of the same app password. Returns 0 if none of the account has the hash `before`. */
export const replaceAppPasswordHash = (tx: Tx, did: Did, before: string, hash: string): Promise<number> =>
  tx.run(sql`UPDATE app_password SET password_hash = ${hash} WHERE did = ${did} AND password_hash = ${before}`)

export const deleteAppPassword = (tx: Tx, did: Did, name: string): Promise<number> =>
  tx.run(sql`DELETE FROM app_password WHERE did = ${did} AND name = ${name}`)
export const deleteAppPasswordsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM app_password WHERE did = ${did}`)
