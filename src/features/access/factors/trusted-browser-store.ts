/** SQL of the `trusted_browser` table: browsers in which an account is not asked for its factor for some time. */
import type { Origin } from '../../../http/origin.ts'
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface TrustedBrowser {
  tokenHash: string
  trustedAt: Millis
  expiresAt: Millis
  openedWith: string | null
  openedFrom: string | null
}

export const putTrustedBrowser = (
  tx: Tx,
  did: Did,
  tokenHash: string,
  { openedAt, openedWith, openedFrom }: Origin,
  expiresAt: Millis,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO trusted_browser (did, token_hash, trusted_at, expires_at, opened_with, opened_from)
    VALUES (${did}, ${tokenHash}, ${openedAt}, ${expiresAt}, ${openedWith}, ${openedFrom})`)

export const isTrustedBrowser = async (reader: Reader, did: Did, tokenHash: string, now: Millis): Promise<boolean> =>
  (await reader.get(
    sql`SELECT 1 FROM trusted_browser WHERE did = ${did} AND token_hash = ${tokenHash} AND expires_at > ${now}`,
  )) !== null

/** Returns the browsers that are trusted still, the newest first. */
export const trustedBrowsersOf = (reader: Reader, did: Did, now: Millis): Promise<TrustedBrowser[]> =>
  reader.all(sql`
    SELECT token_hash AS "tokenHash", trusted_at AS "trustedAt", expires_at AS "expiresAt", opened_with AS "openedWith",
      opened_from AS "openedFrom"
    FROM trusted_browser WHERE did = ${did} AND expires_at > ${now} ORDER BY trusted_at DESC, token_hash`)

export const deleteTrustedBrowser = (tx: Tx, did: Did, tokenHash: string): Promise<number> =>
  tx.run(sql`DELETE FROM trusted_browser WHERE did = ${did} AND token_hash = ${tokenHash}`)

export const deleteTrustedBrowsersOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM trusted_browser WHERE did = ${did}`)

export const deleteTrustBefore = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM trusted_browser WHERE did = ${did} AND expires_at <= ${now}`)
