/** Finds password hashes that another server made. A partial index holds only those. */
import { sql, type Reader } from '../../../platform/database/database.ts'

const isForeign = sql`substr(password_hash, 1, 8) = '$scrypt$'`

/** Whether any account or app password has such a hash. */
export const hasForeignHash = async (reader: Reader): Promise<boolean> =>
  (await reader.get(sql`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM account WHERE ${isForeign}) OR EXISTS (SELECT 1 FROM app_password WHERE ${isForeign})`)) !==
  null
