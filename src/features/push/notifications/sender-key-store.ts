/** SQL of the `push_sender_key` table. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

/**
 * `active`: seals pushes; at most one key does. `retired`: is still published, but seals no more pushes. `revoked`:
 * neither, and its secret has been deleted.
 */
export type SenderKeyState = 'active' | 'retired' | 'revoked'

export interface SenderKeyRow {
  kid: number
  /** Null once the key is revoked. */
  wrapped: string | null
  state: SenderKeyState
  createdAt: Millis
  changedAt: Millis
}

const columns = sql`kid, secret_wrapped AS wrapped, state, created_at AS "createdAt", changed_at AS "changedAt"`

/** Returns all keys, the newest first. */
export const listSenderKeys = (reader: Reader): Promise<SenderKeyRow[]> =>
  reader.all<SenderKeyRow>(sql`SELECT ${columns} FROM push_sender_key ORDER BY kid DESC`)

export const findSenderKey = (reader: Reader, kid: number): Promise<SenderKeyRow | null> =>
  reader.get<SenderKeyRow>(sql`SELECT ${columns} FROM push_sender_key WHERE kid = ${kid}`)

export const findActiveSenderKey = (reader: Reader): Promise<SenderKeyRow | null> =>
  reader.get<SenderKeyRow>(sql`SELECT ${columns} FROM push_sender_key WHERE state = 'active'`)

/** Returns how many keys are active or retired. */
export const countPublishedSenderKeys = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM push_sender_key WHERE state <> 'revoked'`))!
    .count

/** Add an active key under the next number. Throws if there is an active one. */
export const insertSenderKey = (tx: Tx, wrapped: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO push_sender_key (kid, secret_wrapped, state, created_at, changed_at)
    SELECT COALESCE(MAX(kid), 0) + 1, ${wrapped}, 'active', ${now}, ${now} FROM push_sender_key`)

export const retireActiveSenderKey = (tx: Tx, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE push_sender_key SET state = 'retired', changed_at = ${now} WHERE state = 'active'`)

/** Revoke a key and forget its secret. Returns 0 if it is revoked already. */
export const revokeSenderKey = (tx: Tx, kid: number, now: Millis): Promise<number> =>
  tx.run(sql`
    UPDATE push_sender_key SET state = 'revoked', secret_wrapped = NULL, changed_at = ${now}
    WHERE kid = ${kid} AND state <> 'revoked'`)

/**
 * Skip the next `count` numbers. The last of them is stored as a revoked key, so that later keys get higher numbers.
 */
export const skipSenderKeyNumbers = (tx: Tx, count: number, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO push_sender_key (kid, secret_wrapped, state, created_at, changed_at)
    SELECT COALESCE(MAX(kid), 0) + ${count}, NULL, 'revoked', ${now}, ${now} FROM push_sender_key`)
