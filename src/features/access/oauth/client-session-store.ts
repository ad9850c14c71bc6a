/** Asks which clients have sessions. */
import { sql, type Reader } from '../../../platform/database/database.ts'

/** Whether any account has a session of the client. */
export const hasSessionOfClient = async (reader: Reader, clientId: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM oauth_session WHERE client_id = ${clientId} LIMIT 1`)) !== null
