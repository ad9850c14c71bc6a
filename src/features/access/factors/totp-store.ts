/** SQL of the `totp_factor` table: the authenticator apps of accounts. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface StoredTotp {
  secretWrapped: string
  createdAt: Millis
  /** Null until the holder has entered a code of the app. */
  confirmedAt: Millis | null
  lastUsedAt: Millis | null
  /** The newest time step whose code was accepted. */
  lastStep: number
}

export const findTotp = (reader: Reader, did: Did): Promise<StoredTotp | null> =>
  reader.get(sql`
    SELECT secret_wrapped AS "secretWrapped", created_at AS "createdAt", confirmed_at AS "confirmedAt",
      last_used_at AS "lastUsedAt", last_step AS "lastStep"
    FROM totp_factor WHERE did = ${did}`)

/** Store an app that is yet to be confirmed, in place of another one. */
export const putTotp = (tx: Tx, did: Did, secretWrapped: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO totp_factor (did, secret_wrapped, created_at, last_step) VALUES (${did}, ${secretWrapped}, ${now}, 0)
    ON CONFLICT (did) DO UPDATE SET secret_wrapped = excluded.secret_wrapped, created_at = excluded.created_at,
      confirmed_at = NULL, last_used_at = NULL, last_step = 0`)

export const confirmStoredTotp = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE totp_factor SET confirmed_at = ${now} WHERE did = ${did}`)

export const useStep = (tx: Tx, did: Did, step: number, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE totp_factor SET last_step = ${step}, last_used_at = ${now} WHERE did = ${did}`)

export const deleteTotp = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM totp_factor WHERE did = ${did}`)
