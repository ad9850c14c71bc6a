/** Reads whether the caller may still act, with the row of the account. */
import type { Standing } from './credential.ts'
import { sql, type Sql } from '../platform/database/database.ts'

/** A column `stands`: 1 if the condition holds, or if there is none. */
export const standsColumn = (standing: Standing | null): Sql =>
  standing === null ? sql`1 AS stands` : sql`CASE WHEN ${standing.condition} THEN 1 ELSE 0 END AS stands`

/** Throws the refusal of a caller whose access has ended, given a row with `standsColumn`. */
export function refuseFallen(standing: Standing | null, { stands }: { stands: number }): void {
  if (standing !== null && stands === 0) throw standing.fallen()
}
