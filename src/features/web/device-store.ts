/** Browsers and who is signed in there, at rest. */
import { sql, type Reader, type Tx } from '../../platform/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

export interface SignIn {
  did: Did
  /** When the password was given last. */
  signedInAt: Millis
}

/** The newest first. Empty for a browser that is not known, or whose time is over. */
export const signInsOf = (reader: Reader, tokenHash: string, now: Millis): Promise<SignIn[]> =>
  reader.all<SignIn>(sql`
    SELECT a.did, a.signed_in_at AS "signedInAt" FROM oauth_device_account a JOIN oauth_device d ON d.token_hash = a.token_hash
    WHERE a.token_hash = ${tokenHash} AND d.expires_at > ${now} ORDER BY a.signed_in_at DESC`)

export async function insertDevice(tx: Tx, tokenHash: string, signIns: readonly SignIn[], expiresAt: Millis): Promise<void> {
  await tx.run(sql`INSERT INTO oauth_device (token_hash, expires_at) VALUES (${tokenHash}, ${expiresAt})`)
  for (const { did, signedInAt } of signIns)
    await tx.run(sql`INSERT INTO oauth_device_account (token_hash, did, signed_in_at) VALUES (${tokenHash}, ${did}, ${signedInAt})`)
}

export async function deleteDevice(tx: Tx, tokenHash: string): Promise<void> {
  await tx.run(sql`DELETE FROM oauth_device_account WHERE token_hash = ${tokenHash}`)
  await tx.run(sql`DELETE FROM oauth_device WHERE token_hash = ${tokenHash}`)
}

export const deleteSignIn = (tx: Tx, tokenHash: string, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_device_account WHERE token_hash = ${tokenHash} AND did = ${did}`)

export const deleteSignInsOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM oauth_device_account WHERE did = ${did}`)

/** Of all browsers but one. */
export const deleteOtherSignIns = (tx: Tx, did: Did, tokenHash: string): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_device_account WHERE did = ${did} AND token_hash <> ${tokenHash}`)

export const countOtherSignIns = async (reader: Reader, did: Did, tokenHash: string, now: Millis): Promise<number> =>
  (await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM oauth_device_account a JOIN oauth_device d ON d.token_hash = a.token_hash
    WHERE a.did = ${did} AND a.token_hash <> ${tokenHash} AND d.expires_at > ${now}`))!.count

export async function deleteDevicesBefore(tx: Tx, now: Millis): Promise<number> {
  await tx.run(sql`DELETE FROM oauth_device_account WHERE token_hash IN (SELECT token_hash FROM oauth_device WHERE expires_at <= ${now})`)
  return tx.run(sql`DELETE FROM oauth_device WHERE expires_at <= ${now}`)
}
