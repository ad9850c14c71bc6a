/**
 * Revalidation: asking again whether a caller may still act. A guard admits a request before its body has arrived, and
 * meanwhile a session may end, a password be replaced or an agent be revoked. So each transaction whose effect lasts
 * revalidates the caller, and so does what takes long.
 */
import { sql, type Reader, type Sql } from '../platform/database/database.ts'
import type { Did } from '../protocol/identifiers.ts'
import type { Refusal } from './errors.ts'

/** Throws a `Refusal` if the credential that admitted the caller has ended since. */
export type Revalidate = (reader: Reader) => Promise<void>

/**
 * The same as a condition that is read with the row of the caller's account, so that it costs no statement of its own.
 */
export interface Revalidation {
  /** The account. */
  did: Did
  condition: Sql
  /** Says why the caller may no longer act. */
  refusal(): Refusal
}

/** A column `valid`: 1 if the condition holds, or if there is none. */
export const validColumn = (revalidation: Revalidation | null): Sql =>
  revalidation === null ? sql`1 AS valid` : sql`CASE WHEN ${revalidation.condition} THEN 1 ELSE 0 END AS valid`

/** Throws the refusal of a caller whose access has ended, given a row with `validColumn`. */
export function requireValid(revalidation: Revalidation | null, { valid }: { valid: number }): void {
  if (revalidation !== null && valid === 0) throw revalidation.refusal()
}
