/**
 * Stores authorization requests that wait for a wallet, or that a wallet decided. Each consent belongs to a pushed
 * request, and is always read together with it: once the request is decided or expired, the consent is over too.
 */
import { sql, sqlList, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { PendingRequest } from './authorization-request-store.ts'

export type ConsentStatus = 'pending' | 'approved' | 'denied' | 'completed'

export interface NewConsent {
  requestId: string
  /** `id_hash` of the pushed request. */
  requestHash: string
  userCode: string
  clientId: string
  /** The scopes in the order of the request, with permission sets expanded. */
  requestedScopes: readonly string[]
  /** A DID, or a handle in lower case. */
  loginHint: string | null
  /** Origin of the site that sent the browser here; null if unknown. */
  webOrigin: string | null
  /** Address of the browser that asks. */
  ip: string
  /** The browser in words; null if unknown. */
  openedWith: string | null
  /** Two digits that the approving person has to type; null if none are required. */
  matchCode: string | null
  /**
   * Hash of the secret of the browser that the consent signs in to pages of this server; null if an app asked for it.
   */
  browserHash: string | null
  createdAt: Millis
  expiresAt: Millis
}

/** A consent whose pushed request is still open. */
export interface Consent extends NewConsent {
  status: ConsentStatus
  pushed: PendingRequest
}

type Row = Omit<Consent, 'requestedScopes' | 'pushed'> & { requestedScope: string; content: string }

const columns = sql`c.request_id AS "requestId", c.request_hash AS "requestHash", c.user_code AS "userCode", c.client_id AS "clientId",
  c.requested_scope AS "requestedScope", c.login_hint AS "loginHint", c.web_origin AS "webOrigin", c.ip, c.opened_with AS "openedWith",
  c.status, c.match_code AS "matchCode", c.browser_hash AS "browserHash", c.created_at AS "createdAt", c.expires_at AS "expiresAt", r.content`

const consentOf = ({ requestedScope, content, ...row }: Row): Consent => ({
  ...row,
  requestedScopes: requestedScope.split(' '),
  pushed: JSON.parse(content) as PendingRequest,
})

/** Returns consents that match a condition, the newest first. */
const listConsents = async (reader: Reader, condition: Sql, now: Millis, limit: number): Promise<Consent[]> =>
  (
    await reader.all<Row>(sql`
      SELECT ${columns} FROM wallet_consent c JOIN oauth_request r ON r.id_hash = c.request_hash
      WHERE ${condition} AND r.expires_at > ${now} ORDER BY c.created_at DESC LIMIT ${limit}`)
  ).map(consentOf)

const findConsent = async (reader: Reader, condition: Sql, now: Millis): Promise<Consent | null> =>
  (await listConsents(reader, condition, now, 1))[0] ?? null

const isPending = (now: Millis): Sql => sql`c.status = 'pending' AND c.expires_at > ${now}`
const isOpen = (now: Millis): Sql => sql`(${isPending(now)} OR c.status = 'approved')`

/** Returns a consent that can still be decided; null if there is none. */
export const findPendingConsent = (reader: Reader, requestId: string, now: Millis): Promise<Consent | null> =>
  findConsent(reader, sql`c.request_id = ${requestId} AND ${isPending(now)}`, now)

export const findPendingConsentByCode = (reader: Reader, userCode: string, now: Millis): Promise<Consent | null> =>
  findConsent(reader, sql`c.user_code = ${userCode} AND ${isPending(now)}`, now)

/** Returns the consent of a pushed request that can still be decided or completed; null if there is none. */
export const findOpenConsentOf = (reader: Reader, requestHash: string, now: Millis): Promise<Consent | null> =>
  findConsent(reader, sql`c.request_hash = ${requestHash} AND ${isOpen(now)}`, now)

/** A consent that signs a browser in to pages of this server, as that browser names it. */
export interface BrowserConsent {
  requestId: string
  browserHash: string
}

/** Returns a consent that can still be decided or completed in this browser; null if there is none. */
export const findOpenConsentIn = (
  reader: Reader,
  { requestId, browserHash }: BrowserConsent,
  now: Millis,
): Promise<Consent | null> =>
  findConsent(reader, sql`c.request_id = ${requestId} AND c.browser_hash = ${browserHash} AND ${isOpen(now)}`, now)

/** Returns the consents that can still be decided and name one of `hints`, the newest first. */
export const pendingConsentsFor = (
  reader: Reader,
  hints: readonly string[],
  now: Millis,
  limit: number,
): Promise<Consent[]> => listConsents(reader, sql`c.login_hint IN ${sqlList(hints)} AND ${isPending(now)}`, now, limit)

export interface ConsentState {
  status: ConsentStatus
  expiresAt: Millis
  /** Whether the pushed request still waits for a decision. */
  isOpen: boolean
}

/** Returns null if there is no such consent. */
export async function findConsentState(reader: Reader, requestId: string, now: Millis): Promise<ConsentState | null> {
  const row = await reader.get<Omit<ConsentState, 'isOpen'> & { requestExpiresAt: Millis | null }>(sql`
    SELECT c.status, c.expires_at AS "expiresAt", r.expires_at AS "requestExpiresAt"
    FROM wallet_consent c LEFT JOIN oauth_request r ON r.id_hash = c.request_hash WHERE c.request_id = ${requestId}`)
  return row && { status: row.status, expiresAt: row.expiresAt, isOpen: (row.requestExpiresAt ?? 0) > now }
}

/** Returns 0 if the pushed request has a consent already, or if one of the codes is taken. */
export const insertConsent = (tx: Tx, consent: NewConsent): Promise<number> =>
  tx.run(sql`
    INSERT INTO wallet_consent (request_id, request_hash, user_code, client_id, requested_scope, login_hint, web_origin, ip, opened_with,
      status, match_code, browser_hash, created_at, expires_at)
    VALUES (${consent.requestId}, ${consent.requestHash}, ${consent.userCode}, ${consent.clientId}, ${consent.requestedScopes.join(' ')},
      ${consent.loginHint}, ${consent.webOrigin}, ${consent.ip}, ${consent.openedWith}, 'pending',
      ${consent.matchCode}, ${consent.browserHash}, ${consent.createdAt}, ${consent.expiresAt})
    ON CONFLICT DO NOTHING`)

/** Delete the lapsed consent of a pushed request, so that the request can get another one. */
export const deleteLapsedConsentOf = (tx: Tx, requestHash: string, now: Millis): Promise<number> =>
  tx.run(
    sql`DELETE FROM wallet_consent WHERE request_hash = ${requestHash} AND status = 'pending' AND expires_at <= ${now}`,
  )

/** Require a match code from now on. Returns 0 if the consent is no longer pending, or already requires one. */
export const latchMatchCode = (tx: Tx, requestId: string, matchCode: string, now: Millis): Promise<number> =>
  tx.run(sql`
    UPDATE wallet_consent SET match_code = ${matchCode}, push_dispatched_at = ${now}
    WHERE request_id = ${requestId} AND status = 'pending' AND expires_at > ${now} AND match_code IS NULL`)

export interface Verdict {
  status: 'approved' | 'denied'
  did: Did
  /** Null for a denial. */
  grantedScopes: readonly string[] | null
}

/**
 * Decide a pending consent. Returns 0 if it is no longer pending, or if its match code has changed since it was read.
 */
export const decideConsent = (
  tx: Tx,
  { requestId, matchCode }: Pick<Consent, 'requestId' | 'matchCode'>,
  { status, did, grantedScopes }: Verdict,
  now: Millis,
): Promise<number> =>
  tx.run(sql`
    UPDATE wallet_consent SET status = ${status}, account_did = ${did}, granted_scope = ${grantedScopes?.join(' ') ?? null}
    WHERE request_id = ${requestId} AND status = 'pending' AND expires_at > ${now} AND COALESCE(match_code, '') = ${matchCode ?? ''}`)

export interface ApprovedConsent extends Pick<Consent, 'requestHash' | 'clientId'> {
  did: Did
  grantedScope: string
}

const completed = (condition: Sql): Sql => sql`
  UPDATE wallet_consent SET status = 'completed' WHERE status = 'approved' AND ${condition}
  RETURNING request_hash AS "requestHash", client_id AS "clientId", account_did AS did, granted_scope AS "grantedScope"`

/**
 * Complete an approved consent for an app. Returns the approved consent; null if it is in any other state, or is for a
 * browser.
 */
export const completeConsent = (tx: Tx, requestId: string): Promise<ApprovedConsent | null> =>
  tx.get<ApprovedConsent>(completed(sql`request_id = ${requestId} AND browser_hash IS NULL`))

/**
 * Complete an approved consent in its browser. Returns the approved consent; null if it is in any other state, or is
 * not for this browser.
 */
export const completeConsentIn = (
  tx: Tx,
  { requestId, browserHash }: BrowserConsent,
): Promise<ApprovedConsent | null> =>
  tx.get<ApprovedConsent>(completed(sql`request_id = ${requestId} AND browser_hash = ${browserHash}`))

interface Lapsed {
  requestId: string
  requestHash: string
  accountDid: Did | null
}

/** Returns up to `limit` consents that expired before an instant, the oldest first. */
export const listLapsedConsents = (reader: Reader, before: Millis, limit: number): Promise<Lapsed[]> =>
  reader.all<Lapsed>(sql`
    SELECT request_id AS "requestId", request_hash AS "requestHash", account_did AS "accountDid" FROM wallet_consent
    WHERE expires_at < ${before} ORDER BY expires_at LIMIT ${limit}`)

export const deleteConsents = (tx: Tx, requestIds: readonly string[]): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_consent WHERE request_id IN ${sqlList(requestIds)}`)

/** Delete the consents that the account has decided. An approval that the browser has not used yet becomes void. */
export const deleteConsentsBy = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_consent WHERE account_did = ${did}`)

/** Delete the consents that the account has decided for browsers. */
export const deleteBrowserConsentsBy = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_consent WHERE account_did = ${did} AND browser_hash IS NOT NULL`)

/** Delete all consents that name one of `hints`, in any state. */
export const deleteConsentsNaming = (tx: Tx, hints: readonly string[]): Promise<number> =>
  tx.run(sql`DELETE FROM wallet_consent WHERE login_hint IN ${sqlList(hints)}`)
