/** SQL of the `recovery_code` table. Codes dated in the future (the clock was set back) are ignored. */
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export const insertRecoveryCode = (tx: Tx, did: Did, codeHash: string, now: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO recovery_code (code_hash, did, issued_at) VALUES (${codeHash}, ${did}, ${now})`)

interface Span {
  since: Millis
  now: Millis
}

const within = ({ since, now }: Span) => sql`issued_at > ${since} AND issued_at <= ${now}`

/** Returns how many unused codes of the account were issued within the span. */
export const countRecoveryCodes = async (reader: Reader, did: Did, span: Span): Promise<number> =>
  (await reader.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM recovery_code WHERE did = ${did} AND ${within(span)}`,
  ))!.count

/** Delete a code of the account that was issued within the span. Returns 0 if there is none. */
export const takeRecoveryCode = (tx: Tx, did: Did, codeHash: string, span: Span): Promise<number> =>
  tx.run(sql`DELETE FROM recovery_code WHERE code_hash = ${codeHash} AND did = ${did} AND ${within(span)}`)

export const deleteRecoveryCodesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM recovery_code WHERE did = ${did}`)

export const deleteRecoveryCodesBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM recovery_code WHERE issued_at < ${instant}`)
