/**
 * What must still hold of whoever asks, when the request takes effect: their session has not ended, for example. It is
 * read with the row of the account, so it costs no statement of its own.
 */
import type { Refusal } from '../../http/errors.ts'
import { sql, type Sql } from '../../platform/database/database.ts'

export interface Standing {
  condition: Sql
  /** Says why the caller may no longer act. */
  fallen(): Refusal
}

/** A column `stands`: 1 if the condition holds, or if there is none. */
export const standsColumn = (standing: Standing | null): Sql =>
  standing === null ? sql`1 AS stands` : sql`CASE WHEN ${standing.condition} THEN 1 ELSE 0 END AS stands`

/** Throws the refusal of a caller who no longer stands, given a row with `standsColumn`. */
export function refuseFallen(standing: Standing | null, { stands }: { stands: number }): void {
  if (standing !== null && stands === 0) throw standing.fallen()
}
