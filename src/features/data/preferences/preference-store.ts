/** Rows of `preference`: one per account, with the whole list as JSON. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Preference } from '../../../protocol/preference-rules.ts'

/** Returns the preferences of an account; empty if it has stored none. */
export async function findPreferences(reader: Reader, did: Did): Promise<Preference[]> {
  const row = await reader.get<{ value: string }>(sql`SELECT value FROM preference WHERE did = ${did}`)
  return row ? (JSON.parse(row.value) as Preference[]) : []
}

export const storePreferences = (tx: Tx, did: Did, preferences: readonly Preference[]): Promise<number> =>
  tx.run(sql`
    INSERT INTO preference (did, value) VALUES (${did}, ${JSON.stringify(preferences)})
    ON CONFLICT (did) DO UPDATE SET value = excluded.value`)

export const deletePreferencesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM preference WHERE did = ${did}`)
