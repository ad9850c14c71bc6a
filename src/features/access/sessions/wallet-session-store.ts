/** SQL of the `wallet_session` table. */
import type { KnownOrigin, Origin } from '../../../http/origin.ts'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface WalletSession {
  tokenHash: string
  did: Did
  /** Whether the session was opened with the password of the account. If so, a change of the password ends it. */
  byPassword: boolean
  expiresAt: Millis
}

/** Most sessions of an account. The page of the account reads all of them. */
const MAX_PER_ACCOUNT = 1000

/** Make room for a session of an account. If there are too many, ends those that were used longest ago. */
export const makeRoomForWalletSession = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`
    DELETE FROM wallet_session WHERE token_hash IN (SELECT token_hash FROM wallet_session WHERE did = ${did}
      ORDER BY COALESCE(used_at, 0) DESC, opened_at DESC, token_hash LIMIT ${MAX_PER_ACCOUNT} OFFSET ${MAX_PER_ACCOUNT - 1})`)

export const insertWalletSession = (
  tx: Tx,
  { tokenHash, did, byPassword, expiresAt }: WalletSession,
  { openedAt, openedWith, openedFrom }: Origin,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO wallet_session (token_hash, did, by_password, expires_at, opened_at, opened_with, opened_from)
    VALUES (${tokenHash}, ${did}, ${byPassword ? 1 : 0}, ${expiresAt}, ${openedAt}, ${openedWith}, ${openedFrom})`)

/** Returns the account of a session; null if the session is unknown or has expired. */
export const findWalletSession = (
  reader: Reader,
  tokenHash: string,
  now: Millis,
): Promise<{ did: Did; usedAt: Millis | null } | null> =>
  reader.get(
    sql`SELECT did, used_at AS "usedAt" FROM wallet_session WHERE token_hash = ${tokenHash} AND expires_at > ${now}`,
  )

export const noteWalletUse = (writer: Writer, tokenHash: string, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE wallet_session SET used_at = ${now} WHERE token_hash = ${tokenHash}`)

export type ListedWalletSession = Pick<WalletSession, 'tokenHash' | 'expiresAt'> &
  KnownOrigin & { usedAt: Millis | null }

/** Returns sessions that have not expired, newest first. */
export const listWalletSessions = (reader: Reader, did: Did, now: Millis): Promise<ListedWalletSession[]> =>
  reader.all(sql`
    SELECT token_hash AS "tokenHash", expires_at AS "expiresAt", used_at AS "usedAt",
      opened_at AS "openedAt", opened_with AS "openedWith", opened_from AS "openedFrom"
    FROM wallet_session WHERE did = ${did} AND expires_at > ${now} ORDER BY opened_at DESC, token_hash`)

export const deleteWalletSession = (tx: Tx, did: Did, tokenHash: string): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_session WHERE did = ${did} AND token_hash = ${tokenHash}`)
export const deleteWalletSessionsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_session WHERE did = ${did}`)
export const deleteWalletSessionsByPassword = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_session WHERE did = ${did} AND by_password = 1`)
export const deleteExpiredWalletSessions = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM wallet_session WHERE expires_at <= ${now}`)
