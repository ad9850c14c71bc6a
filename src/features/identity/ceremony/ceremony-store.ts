/** SQL of the `ceremony` table. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'

/** A pending account. */
export interface Ceremony {
  id: string
  handle: Handle
  email: string
  tier: string
  inviteCode: string
  createdAt: Millis
  /** Null until a wallet begins. */
  sessionExpiresAt: Millis | null
  /** The key that will sign the repository; null until the wallet asks for it. */
  key: WrappedKey | null
  /** Stored before the directory learns of the identity. */
  did: Did | null
  /** When this server learned that the directory has the identity; always null for a did:web. */
  registeredAt: Millis | null
}

interface Row extends Omit<Ceremony, 'key'> {
  signingKey: string | null
  wrapped: string | null
}

const columns = sql`c.id, c.handle, c.email, c.tier, c.invite_code AS "inviteCode", c.created_at AS "createdAt",
  c.session_expires_at AS "sessionExpiresAt", c.signing_key AS "signingKey", c.signing_key_wrapped AS wrapped, c.did,
  c.registered_at AS "registeredAt"`

const fromRow = ({ signingKey, wrapped, ...row }: Row): Ceremony => ({
  ...row,
  key: signingKey === null || wrapped === null ? null : { signingKey, wrapped },
})

/** Returns null if the ceremony does not exist or has ended. */
export async function findCeremony(reader: Reader, id: string): Promise<Ceremony | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM ceremony c WHERE c.id = ${id}`)
  return row && fromRow(row)
}

/** Returns the ceremony of the session; null if the session is unknown or has ended. */
export async function findCeremonyBySession(
  reader: Reader,
  sessionHash: string,
  now: Millis,
): Promise<Ceremony | null> {
  const row = await reader.get<Row>(
    sql`SELECT ${columns} FROM ceremony c WHERE c.session_hash = ${sessionHash} AND c.session_expires_at > ${now}`,
  )
  return row && fromRow(row)
}

export const insertCeremony = (
  tx: Tx,
  {
    id,
    handle,
    email,
    tier,
    inviteCode,
    createdAt,
  }: Omit<Ceremony, 'sessionExpiresAt' | 'key' | 'did' | 'registeredAt'>,
): Promise<number> =>
  tx.run(sql`
    INSERT INTO ceremony (id, handle, email, tier, invite_code, created_at)
    VALUES (${id}, ${handle}, ${email}, ${tier}, ${inviteCode}, ${createdAt})`)

/** Give the ceremony another session. The previous one becomes void. */
export const replaceCeremonySession = (tx: Tx, id: string, sessionHash: string, expiresAt: Millis): Promise<number> =>
  tx.run(sql`UPDATE ceremony SET session_hash = ${sessionHash}, session_expires_at = ${expiresAt} WHERE id = ${id}`)

/** Does nothing if the ceremony has a key. */
export const insertCeremonyKey = (tx: Tx, id: string, { signingKey, wrapped }: WrappedKey): Promise<number> =>
  tx.run(
    sql`UPDATE ceremony SET signing_key = ${signingKey}, signing_key_wrapped = ${wrapped} WHERE id = ${id} AND signing_key IS NULL`,
  )

/** Returns 0 if the ceremony already has another identity, or has ended. */
export const setCeremonyDid = (tx: Tx, id: string, did: Did): Promise<number> =>
  tx.run(sql`UPDATE ceremony SET did = ${did} WHERE id = ${id} AND (did IS NULL OR did = ${did})`)

export const clearCeremonyDid = (tx: Tx, id: string, did: Did): Promise<number> =>
  tx.run(sql`UPDATE ceremony SET did = NULL WHERE id = ${id} AND did = ${did} AND registered_at IS NULL`)

export const setRegistered = (tx: Tx, id: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE ceremony SET registered_at = ${now} WHERE id = ${id} AND registered_at IS NULL`)

export const deleteCeremony = (tx: Tx, id: string): Promise<number> =>
  tx.run(sql`DELETE FROM ceremony WHERE id = ${id}`)

/** Its session expired by `before`; or, if it never had a session, it was created by then. */
const isQuiet = (before: Millis) => sql`COALESCE(session_expires_at, created_at) <= ${before}`

/** Returns 0 if the ceremony has ended, or has a session again. */
export const deleteQuietCeremony = (tx: Tx, id: string, before: Millis): Promise<number> =>
  tx.run(sql`DELETE FROM ceremony WHERE id = ${id} AND ${isQuiet(before)}`)

/** The progress of ceremonies, in order: the last step that has been done. */
export const ceremonyStates = ['created', 'key_issued', 'did_stored', 'registered'] as const
type CeremonyState = (typeof ceremonyStates)[number]

const state = sql`CASE WHEN c.registered_at IS NOT NULL THEN 'registered' WHEN c.did IS NOT NULL THEN 'did_stored'
  WHEN c.signing_key IS NOT NULL THEN 'key_issued' ELSE 'created' END AS state`

/** Position of a ceremony in the list of all, newest first. */
export type CeremonyPlace = Pick<Ceremony, 'createdAt' | 'id'>

/** A ceremony with its progress. `hasCode`: its code has not been used yet. */
export type ListedCeremony = Ceremony & { state: CeremonyState; hasCode: boolean }

/** Returns a page of ceremonies, newest first, after a place. */
export async function listCeremonies(
  reader: Reader,
  after: CeremonyPlace | null,
  limit: number,
): Promise<ListedCeremony[]> {
  const condition = after === null ? sql`1 = 1` : sql`(c.created_at, c.id) < (${after.createdAt}, ${after.id})`
  const rows = await reader.all<Row & { state: CeremonyState; uses: number }>(sql`
    SELECT ${columns}, ${state}, (SELECT COUNT(*) FROM invite_use u WHERE u.code = c.invite_code AND u.used_by = c.id) AS uses
    FROM ceremony c WHERE ${condition} ORDER BY c.created_at DESC, c.id DESC LIMIT ${limit}`)
  return rows.map(({ state, uses, ...row }) => ({ ...fromRow(row), state, hasCode: uses === 0 }))
}

/**
 * Conditions by what is known of the identity: the directory has it; the directory may have it; the directory is not
 * known to have it.
 */
const kinds = {
  registered: sql`registered_at IS NOT NULL`,
  doubtful: sql`registered_at IS NULL AND did IS NOT NULL`,
  unregistered: sql`registered_at IS NULL`,
}
export type CeremonyKind = keyof typeof kinds

/** Returns quiet ceremonies of a kind, the oldest first, after a place. */
export async function listQuietCeremonies(
  reader: Reader,
  { before, kind, after, limit }: { before: Millis; kind: CeremonyKind; after: CeremonyPlace | null; limit: number },
): Promise<Ceremony[]> {
  const follows = after === null ? sql`1 = 1` : sql`(c.created_at, c.id) > (${after.createdAt}, ${after.id})`
  const rows = await reader.all<Row>(sql`
    SELECT ${columns} FROM ceremony c
    WHERE ${isQuiet(before)} AND ${kinds[kind]} AND ${follows}
    ORDER BY c.created_at, c.id LIMIT ${limit}`)
  return rows.map(fromRow)
}

/** Returns how many ceremonies there are in each state that any is in. */
export const countCeremonies = (reader: Reader): Promise<{ state: CeremonyState; count: number }[]> =>
  reader.all(sql`SELECT ${state}, COUNT(*) AS count FROM ceremony c GROUP BY 1`)
