/** The language of the mails to an account holder, in a column of the account's row. `mailOf` reads it. */
import { sql, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Language } from '../../../protocol/languages.ts'

/**
 * Store the language that the account holder chose, or the one that a browser prefers. The preference of a browser
 * never replaces a stored language: otherwise an intruder could sign in with a language that the holder does not read,
 * and the mail about that sign-in would be in this language.
 */
export const keepMailLanguage = (
  tx: Tx,
  did: Did,
  language: Language,
  { isChosen }: { isChosen: boolean },
): Promise<number> =>
  tx.run(
    sql`UPDATE account SET language = ${language} WHERE did = ${did} AND ${isChosen ? sql`1 = 1` : sql`language IS NULL`}`,
  )
