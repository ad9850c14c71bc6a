/** Asks which factors an account has: the only statement that a sign-in without factors costs. */
import { sql, type Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export interface FactorSummary {
  totp: boolean
  passkeys: number
  recoveryCodes: number
}

export async function summaryOf(reader: Reader, did: Did): Promise<FactorSummary> {
  const row = await reader.get<{ totp: number; passkeys: number; recoveryCodes: number }>(sql`
    SELECT (SELECT count(*) FROM totp_factor WHERE did = ${did} AND confirmed_at IS NOT NULL) AS totp,
      (SELECT count(*) FROM passkey WHERE did = ${did}) AS passkeys,
      (SELECT count(*) FROM factor_recovery_code WHERE did = ${did}) AS "recoveryCodes"`)
  return { ...row!, totp: row!.totp > 0 }
}

/** Whether the account has something that its holder keeps: an authenticator app, or a passkey. */
export const hasHeldFactor = ({ totp, passkeys }: FactorSummary): boolean => totp || passkeys > 0
