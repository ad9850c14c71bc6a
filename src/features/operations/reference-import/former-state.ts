/** Tells whether the old server has run since an account came here. */
import type { Did } from '../../../protocol/identifiers.ts'
import type { ReferenceActor } from './reference-actor.ts'
import type { ReferenceDatabase } from './reference-database.ts'
import type { ReferenceFolder } from './reference-folder.ts'

/** Tables with rows about an account, and tables of the account's own database that change whenever it is used. */
const shared = ['actor', 'account', 'app_password', 'refresh_token', 'token']
const own = ['repo_root', 'account_pref']

/** Returns a digest of what the old server has of an account. It does not depend on the present time. */
export function formerStateOf(
  { accounts }: Pick<ReferenceFolder, 'accounts'>,
  { database }: Pick<ReferenceActor, 'database'>,
  did: Did,
): string {
  const rows = [
    ...shared.map((table) => rowsOf(accounts, `SELECT * FROM ${table} WHERE did = ?`, did)),
    ...own.map((table) => rowsOf(database, `SELECT * FROM ${table}`)),
  ]
  return new Bun.SHA256().update(JSON.stringify(rows)).digest('base64url')
}

/** Rows as text, in an order that depends on the rows alone. */
const rowsOf = (database: ReferenceDatabase, query: string, ...values: string[]): string[] =>
  database
    .all(query, ...values)
    .map((row) => JSON.stringify(row))
    .toSorted()
