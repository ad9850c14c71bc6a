/** Stores values that may be used only once. */
import { sql, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

/** Record the use of a value. Returns false if the value is already recorded. */
export async function useOnce(
  writer: Writer,
  kind: 'assertion' | 'challenge' | 'identity-assertion' | 'sign-up-proof',
  value: string,
  expiresAt: Millis,
): Promise<boolean> {
  return (
    (await writer.run(
      sql`INSERT INTO oauth_replay (kind, value, expires_at) VALUES (${kind}, ${value}, ${expiresAt}) ON CONFLICT (kind, value) DO NOTHING`,
    )) === 1
  )
}

export const deleteUsedBefore = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM oauth_replay WHERE expires_at <= ${now}`)
