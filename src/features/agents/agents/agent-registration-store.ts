/** SQL of the `agent_registration` table. */
import { sql, sqlList, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export type RegistrationType = 'anonymous' | 'service_auth' | 'identity_assertion' | 'child'

/** `active`: waits for a person to confirm it. `claimed`: may act. `revoked`: ended for good. */
export type RegistrationStatus = 'active' | 'claimed' | 'revoked'

export interface Registration {
  id: string
  /** The account that the agent acts for; null for an anonymous agent until it is confirmed. */
  did: Did | null
  type: RegistrationType
  issuer: string | null
  subject: string | null
  parentDid: Did | null
  email: string | null
  /** Scopes in canonical form, sorted. */
  scopes: readonly string[]
  /** Whether it may read what only the account sees. The account holder decides when confirming it. */
  privateReads: boolean
  /** What it calls itself; null if it did not say. */
  clientName: string | null
  /** The program and the network that registered it; null if unknown. */
  openedWith: string | null
  openedFrom: string | null
  assertionExpiresAt: Millis | null
  claimTokenHash: string | null
  claimTokenExpiresAt: Millis | null
  confirmedAt: Millis | null
  status: RegistrationStatus
  createdAt: Millis
  updatedAt: Millis
}

/** The name that an agent gives itself, unverified. */
export const ownNameOf = ({
  clientName,
  openedWith,
}: Pick<Registration, 'clientName' | 'openedWith'>): string | undefined => clientName ?? openedWith ?? undefined

type Row = Omit<Registration, 'scopes' | 'privateReads'> & { scopes: string; privateReads: number }

const columns = sql`id, did, type, issuer, COALESCE(subject, former_subject) AS subject, parent_did AS "parentDid", email, scopes,
  private_reads AS "privateReads", client_name AS "clientName", opened_with AS "openedWith", opened_from AS "openedFrom", assertion_expires_at AS "assertionExpiresAt", claim_token_hash AS "claimTokenHash",
  claim_token_expires_at AS "claimTokenExpiresAt", confirmed_at AS "confirmedAt", status,
  created_at AS "createdAt", updated_at AS "updatedAt"`

const decoded = <R extends Pick<Row, 'scopes' | 'privateReads'>>(row: R) => ({
  ...row,
  scopes: JSON.parse(row.scopes) as string[],
  privateReads: row.privateReads === 1,
})

const registrationOf = (row: Row | null): Registration | null => row && decoded(row)

export const findRegistration = async (reader: Reader, id: string): Promise<Registration | null> =>
  registrationOf(await reader.get<Row>(sql`SELECT ${columns} FROM agent_registration WHERE id = ${id}`))

export const findRegistrationByClaimToken = async (reader: Reader, tokenHash: string): Promise<Registration | null> =>
  registrationOf(
    await reader.get<Row>(sql`SELECT ${columns} FROM agent_registration WHERE claim_token_hash = ${tokenHash}`),
  )

export const findRegistrationOfSubject = async (
  reader: Reader,
  issuer: string,
  subject: string,
): Promise<Registration | null> =>
  registrationOf(
    await reader.get<Row>(
      sql`SELECT ${columns} FROM agent_registration WHERE issuer = ${issuer} AND subject = ${subject}`,
    ),
  )

export interface ListedAgent extends Registration {
  /** When it last got a token, wrote or uploaded; null if never. */
  lastUsedAt: Millis | null
}

/**
 * Most unconfirmed agents that are listed, the newest: strangers can make any number of agents request access to an
 * account.
 */
const MAX_LISTED_UNCONFIRMED = 200

/** Returns the agents of an account, newest first: all agents that may act for it, and the newest of the others. */
export async function listAgents(reader: Reader, did: Did): Promise<ListedAgent[]> {
  const rows = await reader.all<Row & { lastUsedAt: Millis | null }>(sql`
    SELECT ${columns}, (
      SELECT e.created_at FROM agent_event e
      WHERE e.registration_id = agent_registration.id AND e.type IN ('token_exchanged', 'repo_write', 'blob_upload')
      ORDER BY e.seq DESC LIMIT 1) AS "lastUsedAt"
    FROM agent_registration
    WHERE did = ${did} AND (status = 'claimed' OR id IN (
      SELECT id FROM agent_registration WHERE did = ${did} AND status <> 'claimed'
      ORDER BY created_at DESC, id DESC LIMIT ${MAX_LISTED_UNCONFIRMED}))
    ORDER BY created_at DESC, id DESC`)
  return rows.map(decoded)
}

export interface AgentCount {
  type: RegistrationType
  status: RegistrationStatus
  /** Null unless an issuer vouches for these agents. */
  issuer: string | null
  count: number
}

const issuerOfType = sql`CASE WHEN type = 'identity_assertion' THEN issuer END`

export const countAgents = (reader: Reader): Promise<AgentCount[]> =>
  reader.all<AgentCount>(sql`
    SELECT type, status, ${issuerOfType} AS issuer, COUNT(*) AS count FROM agent_registration
    GROUP BY type, status, ${issuerOfType} ORDER BY type, status, issuer`)

/** Returns agents for which an issuer vouches and that have not ended. */
export const listAgentsOfIssuer = (
  reader: Reader,
  issuer: string,
  limit: number,
): Promise<Pick<Registration, 'id' | 'did' | 'clientName' | 'openedWith' | 'confirmedAt'>[]> =>
  reader.all(sql`
    SELECT id, did, client_name AS "clientName", opened_with AS "openedWith", confirmed_at AS "confirmedAt"
    FROM agent_registration
    WHERE issuer = ${issuer} AND type = 'identity_assertion' AND status <> 'revoked' ORDER BY id LIMIT ${limit}`)

/**
 * Returns what decides how far an agent may act; null if the account has not confirmed it. Read at every request of an
 * agent.
 */
export async function findClaimed(
  reader: Reader,
  id: string,
  did: Did,
): Promise<Pick<Registration, 'type' | 'issuer' | 'scopes' | 'privateReads'> | null> {
  const row = await reader.get<Pick<Row, 'type' | 'issuer' | 'scopes' | 'privateReads'>>(sql`
    SELECT type, issuer, scopes, private_reads AS "privateReads" FROM agent_registration
    WHERE id = ${id} AND did = ${did} AND status = 'claimed'`)
  return row && decoded(row)
}

/** Throws a unique violation if the issuer's subject or the claim token exists. */
export async function insertRegistration(tx: Tx, registration: Registration): Promise<void> {
  const { id, did, type, issuer, subject, parentDid, email, scopes, privateReads, status, createdAt, updatedAt } =
    registration
  const { clientName, openedWith, openedFrom, assertionExpiresAt, claimTokenHash, claimTokenExpiresAt, confirmedAt } =
    registration
  await tx.run(sql`
    INSERT INTO agent_registration (id, did, type, issuer, subject, parent_did, email, scopes, private_reads, client_name,
      opened_with, opened_from, assertion_expires_at, claim_token_hash, claim_token_expires_at, confirmed_at, status, created_at, updated_at)
    VALUES (${id}, ${did}, ${type}, ${issuer}, ${subject}, ${parentDid}, ${email}, ${JSON.stringify(scopes)}, ${privateReads ? 1 : 0}, ${clientName},
      ${openedWith}, ${openedFrom}, ${assertionExpiresAt}, ${claimTokenHash}, ${claimTokenExpiresAt}, ${confirmedAt}, ${status}, ${createdAt}, ${updatedAt})`)
}

/**
 * Bind a pending registration to the account that confirms it. Returns 0 if it is no longer pending, or is for another
 * account.
 */
export const confirmRegistration = (
  tx: Tx,
  {
    id,
    did,
    scopes,
    privateReads,
    assertionExpiresAt,
    now,
  }: Pick<Registration, 'id' | 'scopes' | 'privateReads'> & { did: Did; assertionExpiresAt: Millis; now: Millis },
): Promise<number> =>
  tx.run(sql`
    UPDATE agent_registration
    SET did = ${did}, scopes = ${JSON.stringify(scopes)}, private_reads = ${privateReads ? 1 : 0}, assertion_expires_at = ${assertionExpiresAt}, status = 'claimed',
      confirmed_at = ${now}, updated_at = ${now}
    WHERE id = ${id} AND status = 'active' AND (did IS NULL OR did = ${did})`)

/** Returns 0 if it is revoked already. */
export const revokeRegistration = (tx: Tx, id: string, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE agent_registration SET status = 'revoked', updated_at = ${now} WHERE id = ${id} AND status <> 'revoked'`,
  )

export const countClaimed = async (reader: Reader, did: Did): Promise<number> =>
  (await reader.get<{ count: number }>(
    sql`SELECT COUNT(*) AS count FROM agent_registration WHERE did = ${did} AND status = 'claimed'`,
  ))!.count

/** Returns the agents that may act for an account. */
export const claimedAgentsOf = (reader: Reader, did: Did): Promise<Pick<Registration, 'id' | 'did'>[]> =>
  reader.all(sql`SELECT id, did FROM agent_registration WHERE did = ${did} AND status = 'claimed'`)

/** Let the providers of an account's agents register new agents in place of these. */
export const freeSubjectsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`
    UPDATE agent_registration SET former_subject = subject, subject = NULL
    WHERE did = ${did} AND status = 'claimed' AND type = 'identity_assertion'`)

export const updateAssertionExpiry = (tx: Tx, id: string, expiresAt: Millis, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE agent_registration SET assertion_expires_at = ${expiresAt}, updated_at = ${now} WHERE id = ${id}`)

/** Give a pending registration a new claim token, which voids the old one. Returns 0 if it is no longer pending. */
export const updateClaimToken = (
  tx: Tx,
  id: string,
  tokenHash: string,
  expiresAt: Millis,
  now: Millis,
): Promise<number> =>
  tx.run(sql`
    UPDATE agent_registration SET claim_token_hash = ${tokenHash}, claim_token_expires_at = ${expiresAt}, updated_at = ${now}
    WHERE id = ${id} AND status = 'active'`)

/** Returns unconfirmed registrations whose claim tokens expired before a time, except the newest `keep`. */
export const abandonedRegistrations = (
  reader: Reader,
  { before, keep = 0, limit }: { before: Millis; keep?: number; limit: number },
): Promise<Pick<Registration, 'id' | 'did'>[]> =>
  reader.all(sql`
    SELECT id, did FROM agent_registration WHERE status = 'active' AND claim_token_expires_at <= ${before}
    ORDER BY claim_token_expires_at DESC LIMIT ${limit} OFFSET ${keep}`)

/** Delete unconfirmed registrations. The events of those without an account are kept for a while. */
export async function deleteAbandoned(tx: Tx, ids: readonly string[]): Promise<number> {
  const list = sqlList(ids)
  await tx.run(sql`DELETE FROM agent_claim WHERE registration_id IN ${list}`)
  await tx.run(sql`DELETE FROM agent_event WHERE registration_id IN ${list} AND did IS NOT NULL`)
  return tx.run(sql`DELETE FROM agent_registration WHERE id IN ${list} AND status = 'active'`)
}

/** Delete an account's agents, their codes and events, and their open confirmation pages. */
export async function deleteAgentsOf(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`DELETE FROM agent_claim_page WHERE did = ${did}`)
  const its = sql`(SELECT id FROM agent_registration WHERE did = ${did})`
  await tx.run(sql`DELETE FROM agent_claim WHERE registration_id IN ${its}`)
  await tx.run(sql`DELETE FROM agent_event WHERE registration_id IN ${its}`)
  await tx.run(sql`DELETE FROM agent_registration WHERE did = ${did}`)
}
