/** SQL of the mailed code in the row of an account. */
import { sql, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

export const updateEmailAuthFactor = (tx: Tx, did: Did, isOn: boolean): Promise<number> =>
  tx.run(sql`UPDATE account SET email_auth_factor = ${isOn ? 1 : 0} WHERE did = ${did}`)
