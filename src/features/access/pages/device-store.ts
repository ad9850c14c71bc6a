/** SQL of the `oauth_device` and `oauth_device_account` tables: browsers, and the accounts signed in there. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { KnownOrigin } from '../../../http/origin.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface SignIn extends KnownOrigin {
  did: Did
  /** When the password was last entered, or a wallet last approved. */
  signedInAt: Millis
  /** The second factor that was used then. */
  passedFactor: PassedFactor | null
  /** When the sign-in was last used, to the hour; null if unknown. */
  usedAt: Millis | null
  /** Whether the browser was asked to keep the account signed in. */
  isRemembered: boolean
}

/** How a request identifies its browser. */
export interface DeviceKey {
  /** The hash of the token that only the browser has. */
  tokenHash: string
  /** The program's name, and its system. */
  program: string
}

/** `held`: something that the holder has; reading the mail does not suffice. */
export type PassedFactor = 'mailed' | 'held'

const columns = sql`a.did, a.signed_in_at AS "signedInAt", a.opened_at AS "openedAt", a.opened_with AS "openedWith",
  a.opened_from AS "openedFrom", a.passed_factor AS "passedFactor", a.used_at AS "usedAt", a.remembered`

type Row<Of extends SignIn> = Omit<Of, 'isRemembered'> & { remembered: number | null }

const signInOf = <Of extends SignIn>({ remembered, ...row }: Row<Of>) => ({ ...row, isRemembered: remembered !== 0 })

/**
 * Returns the sign-ins of a browser, newest first, including sign-ins that have ended while the browser has not
 * expired. Returns none if the browser is unknown or has expired, or if `program` is not the program of the last
 * sign-in.
 */
export async function signInsOf(reader: Reader, { tokenHash, program }: DeviceKey, now: Millis): Promise<SignIn[]> {
  const rows = await reader.all<Row<SignIn>>(sql`
    SELECT ${columns} FROM oauth_device_account a JOIN oauth_device d ON d.token_hash = a.token_hash
    WHERE a.token_hash = ${tokenHash} AND d.expires_at > ${now} AND (d.program IS NULL OR d.program = ${program})
    ORDER BY a.signed_in_at DESC`)
  return rows.map(signInOf)
}

/**
 * Store a browser and the accounts signed in there, unless it is stored already. `program` is null if it is not known
 * yet.
 */
export async function insertDevice(
  tx: Tx,
  { tokenHash, program }: Omit<DeviceKey, 'program'> & { program: string | null },
  signIns: readonly SignIn[],
  expiresAt: Millis,
): Promise<void> {
  const inserted = await tx.run(
    sql`INSERT INTO oauth_device (token_hash, program, expires_at) VALUES (${tokenHash}, ${program}, ${expiresAt}) ON CONFLICT DO NOTHING`,
  )
  if (inserted === 0) return
  for (const { did, signedInAt, passedFactor, usedAt, isRemembered, openedAt, openedWith, openedFrom } of signIns)
    await tx.run(sql`
      INSERT INTO oauth_device_account
        (token_hash, did, signed_in_at, passed_factor, used_at, remembered, opened_at, opened_with, opened_from)
      VALUES (${tokenHash}, ${did}, ${signedInAt}, ${passedFactor}, ${usedAt}, ${isRemembered ? 1 : 0}, ${openedAt},
        ${openedWith}, ${openedFrom})`)
}

/** Most browsers in which an account is signed in. The page of the account reads all of them. */
const MAX_BROWSERS = 1000

/** Make room for a browser of an account. If there are too many, signs out those that were used longest ago. */
export const makeRoomForSignIn = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`
    DELETE FROM oauth_device_account WHERE did = ${did} AND token_hash IN (
      SELECT token_hash FROM oauth_device_account WHERE did = ${did}
      ORDER BY COALESCE(used_at, signed_in_at) DESC, token_hash LIMIT ${MAX_BROWSERS} OFFSET ${MAX_BROWSERS - 1})`)

/** Note that an account is used in a browser. */
export const noteBrowserUse = (writer: Writer, tokenHash: string, did: Did, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE oauth_device_account SET used_at = ${now} WHERE token_hash = ${tokenHash} AND did = ${did}`)

/** Give a browser another token, and note its program. Returns 0 if no browser has the token hash `before`. */
export async function renameDevice(tx: Tx, before: string, { tokenHash, program }: DeviceKey): Promise<number> {
  await tx.run(sql`UPDATE oauth_device_account SET token_hash = ${tokenHash} WHERE token_hash = ${before}`)
  return tx.run(
    sql`UPDATE oauth_device SET token_hash = ${tokenHash}, program = ${program} WHERE token_hash = ${before}`,
  )
}

/** Delete a browser and its sign-ins. */
export async function deleteDevice(tx: Tx, tokenHash: string): Promise<void> {
  await tx.run(sql`DELETE FROM oauth_device_account WHERE token_hash = ${tokenHash}`)
  await tx.run(sql`DELETE FROM oauth_device WHERE token_hash = ${tokenHash}`)
}

/** Delete the sign-in of an account in one browser. Returns 0 if there is none. */
export const deleteSignIn = (tx: Tx, tokenHash: string, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_device_account WHERE token_hash = ${tokenHash} AND did = ${did}`)

/** Delete the account's sign-ins in all browsers. Returns how many. */
export const deleteSignInsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_device_account WHERE did = ${did}`)

/** Delete the account's sign-ins in all browsers except one. */
export const deleteOtherSignIns = (tx: Tx, did: Did, tokenHash: string): Promise<number> =>
  tx.run(sql`DELETE FROM oauth_device_account WHERE did = ${did} AND token_hash <> ${tokenHash}`)

/** A browser in which an account is signed in, identified by the hash of a token that only the browser has. */
export interface KnownBrowser extends SignIn {
  tokenHash: string
}

/**
 * Returns the browsers in which the account has signed in, most recent sign-in first, including those where the sign-in
 * has ended but the browser has not expired.
 */
export async function browsersOf(reader: Reader, did: Did, now: Millis): Promise<KnownBrowser[]> {
  const rows = await reader.all<Row<KnownBrowser>>(sql`
    SELECT a.token_hash AS "tokenHash", ${columns}
    FROM oauth_device_account a JOIN oauth_device d ON d.token_hash = a.token_hash
    WHERE a.did = ${did} AND d.expires_at > ${now} ORDER BY a.signed_in_at DESC`)
  return rows.map(signInOf)
}

/** Delete the browsers that have expired by `now`, with their sign-ins. Returns how many browsers. */
export async function deleteDevicesBefore(tx: Tx, now: Millis): Promise<number> {
  await tx.run(
    sql`DELETE FROM oauth_device_account WHERE token_hash IN (SELECT token_hash FROM oauth_device WHERE expires_at <= ${now})`,
  )
  return tx.run(sql`DELETE FROM oauth_device WHERE expires_at <= ${now}`)
}
