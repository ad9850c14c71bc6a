/** Asks for hashes of passwords that another server made. An index holds those alone. */
import { sql, type Reader } from '../../../platform/database/database.ts'

const isForeign = sql`substr(password_hash, 1, 8) = '$scrypt$'`

/** Whether any account or app password has one. */
export const hasForeignHash = async (reader: Reader): Promise<boolean> =>
  (await reader.get(sql`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM account WHERE ${isForeign}) OR EXISTS (SELECT 1 FROM app_password WHERE ${isForeign})`)) !==
  null
