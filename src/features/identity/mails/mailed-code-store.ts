/** SQL of the `mailed_code` table. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type CodePurpose =
  'confirm_email' | 'update_email' | 'reset_password' | 'delete_account' | 'plc_operation' | 'sign_in'

export interface MailedCode {
  did: Did
  codeHash: string
  requestedAt: Millis
  failures: number
}

const columns = sql`did, code_hash AS "codeHash", requested_at AS "requestedAt", failures`

/** Store a code, replacing an earlier one with the same purpose. */
export const putMailedCode = (
  tx: Tx,
  did: Did,
  purpose: CodePurpose,
  codeHash: string,
  requestedAt: Millis,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO mailed_code (did, purpose, code_hash, requested_at, failures) VALUES (${did}, ${purpose}, ${codeHash}, ${requestedAt}, 0)
    ON CONFLICT (did, purpose) DO UPDATE SET code_hash = excluded.code_hash, requested_at = excluded.requested_at, failures = 0`)

export const findMailedCode = (reader: Reader, did: Did, purpose: CodePurpose): Promise<MailedCode | null> =>
  reader.get(sql`SELECT ${columns} FROM mailed_code WHERE did = ${did} AND purpose = ${purpose}`)

export const findMailedCodeByHash = (
  reader: Reader,
  purpose: CodePurpose,
  codeHash: string,
): Promise<MailedCode | null> =>
  reader.get(sql`SELECT ${columns} FROM mailed_code WHERE code_hash = ${codeHash} AND purpose = ${purpose}`)

export const countFailure = (tx: Tx, did: Did, purpose: CodePurpose): Promise<number> =>
  tx.run(sql`UPDATE mailed_code SET failures = failures + 1 WHERE did = ${did} AND purpose = ${purpose}`)

export const deleteMailedCode = (tx: Tx, did: Did, purpose: CodePurpose): Promise<number> =>
  tx.run(sql`DELETE FROM mailed_code WHERE did = ${did} AND purpose = ${purpose}`)

export const deleteMailedCodesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM mailed_code WHERE did = ${did}`)
export const deleteMailedCodesBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM mailed_code WHERE requested_at < ${instant}`)
