/** SQL of the `mailed_code` table. */
import { sql, sqlList, type Reader, type Sql, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type CodePurpose =
  'confirm_email' | 'update_email' | 'reset_password' | 'delete_account' | 'plc_operation' | 'sign_in'

/** The value of the column `purpose`: the purpose, with a number if an account may have several codes for it. */
export type CodePlace = CodePurpose | `${CodePurpose} ${number}`

/** Places of further codes: an account may have several codes for a purpose if strangers can have such codes mailed. */
const furtherPlaces: Readonly<Partial<Record<CodePurpose, readonly CodePlace[]>>> = {
  reset_password: ['reset_password 2', 'reset_password 3', 'reset_password 4', 'reset_password 5'],
}

/** The places of all codes that an account may have at the same time for a purpose. */
export const placesOf = (purpose: CodePurpose): CodePlace[] => [purpose, ...(furtherPlaces[purpose] ?? [])]

const isFor = (purpose: CodePurpose): Sql => sql`purpose IN ${sqlList(placesOf(purpose))}`

export interface MailedCode {
  did: Did
  place: CodePlace
  codeHash: string
  requestedAt: Millis
  failures: number
}

const columns = sql`did, purpose AS place, code_hash AS "codeHash", requested_at AS "requestedAt", failures`

/** Store a code, replacing an earlier one in the same place. */
export const putMailedCode = (
  tx: Tx,
  did: Did,
  place: CodePlace,
  codeHash: string,
  requestedAt: Millis,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO mailed_code (did, purpose, code_hash, requested_at, failures) VALUES (${did}, ${place}, ${codeHash}, ${requestedAt}, 0)
    ON CONFLICT (did, purpose) DO UPDATE SET code_hash = excluded.code_hash, requested_at = excluded.requested_at, failures = 0`)

/** Returns the codes of an account for a purpose, the oldest first. */
export const mailedCodesOf = (reader: Reader, did: Did, purpose: CodePurpose): Promise<MailedCode[]> =>
  reader.all(
    sql`SELECT ${columns} FROM mailed_code WHERE did = ${did} AND ${isFor(purpose)} ORDER BY requested_at, purpose`,
  )

export const findMailedCode = (reader: Reader, did: Did, purpose: CodePurpose): Promise<MailedCode | null> =>
  reader.get(sql`SELECT ${columns} FROM mailed_code WHERE did = ${did} AND purpose = ${purpose}`)

export const findMailedCodeByHash = (
  reader: Reader,
  purpose: CodePurpose,
  codeHash: string,
): Promise<MailedCode | null> =>
  reader.get(sql`SELECT ${columns} FROM mailed_code WHERE code_hash = ${codeHash} AND ${isFor(purpose)}`)

export const countFailure = (tx: Tx, did: Did, purpose: CodePurpose): Promise<number> =>
  tx.run(sql`UPDATE mailed_code SET failures = failures + 1 WHERE did = ${did} AND purpose = ${purpose}`)

export const deleteMailedCodes = (tx: Tx, did: Did, purpose: CodePurpose): Promise<number> =>
  tx.run(sql`DELETE FROM mailed_code WHERE did = ${did} AND ${isFor(purpose)}`)

export const deleteMailedCodesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM mailed_code WHERE did = ${did}`)
export const deleteMailedCodesBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM mailed_code WHERE requested_at < ${instant}`)
