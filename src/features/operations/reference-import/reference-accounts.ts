/** Reads the accounts of a reference PDS, and what belongs to them, from its `account.sqlite`. */
import { scryptText } from '../../../platform/secrets/scrypt.ts'
import { parseDid, parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { isTokenId, REFRESH_TTL_SECS, type FormerSession, type NewAppPassword } from '../../access/sessions/sessions.ts'
import { endsOf, isFormerRefreshToken, type FormerOAuthSession } from '../../access/oauth/oauth.ts'
import { formerBrowser } from '../../access/pages/pages.ts'
import type { InviteCode } from '../../identity/invites/invites.ts'
import type { ReferenceDatabase } from './reference-database.ts'

/** Accounts and browsers in one page. */
const PAGE = 500

export interface FormerAccount {
  did: Did
  /** Null if the account has none, or only an invalid one. */
  handle: Handle | null
  email: string | null
  emailConfirmedAt: Millis | null
  passwordHash: string | null
  createdAt: Millis
  deactivatedAt: Millis | null
  deleteAfter: Millis | null
  takedownRef: string | null
  invitesDisabled: boolean
}

interface AccountRow {
  did: string
  handle: string | null
  email: string | null
  emailConfirmedAt: string | null
  passwordScrypt: string | null
  createdAt: string
  deactivatedAt: string | null
  deleteAfter: string | null
  takedownRef: string | null
  invitesDisabled: number | null
}

const instant = (text: string): Millis => Date.parse(text) || 0
const optionalInstant = (text: string | null): Millis | null => (text === null ? null : instant(text))

/** Whether the old server has the account. */
export const isAccountOf = (database: ReferenceDatabase, did: Did): boolean =>
  database.get('SELECT 1 FROM actor WHERE did = ?', did) !== null

/** Yields all accounts in the order of their DIDs. */
export function* accountsOf(database: ReferenceDatabase): Generator<FormerAccount> {
  for (let last = ''; ;) {
    const rows = database.all<AccountRow>(
      `SELECT a.did, handle, email, emailConfirmedAt, passwordScrypt, createdAt, deactivatedAt, deleteAfter, takedownRef, invitesDisabled
       FROM actor a LEFT JOIN account USING (did) WHERE a.did > ? ORDER BY a.did LIMIT ${PAGE}`,
      last,
    )
    if (rows.length === 0) return
    last = rows.at(-1)!.did
    for (const row of rows) {
      const did = parseDid(row.did)
      if (did !== null) yield accountOf(did, row)
    }
  }
}

const accountOf = (did: Did, row: AccountRow): FormerAccount => ({
  did,
  handle: row.handle === null ? null : parseHandle(row.handle),
  email: row.email,
  emailConfirmedAt: optionalInstant(row.emailConfirmedAt),
  passwordHash: row.passwordScrypt === null ? null : hashOf(row.passwordScrypt),
  createdAt: instant(row.createdAt),
  deactivatedAt: optionalInstant(row.deactivatedAt),
  deleteAfter: optionalInstant(row.deleteAfter),
  takedownRef: row.takedownRef,
  invitesDisabled: row.invitesDisabled === 1,
})

/** Parses a salt and a 64-byte hash, in hexadecimal. The salt was hashed as text. Null for other text. */
function hashOf(text: string): string | null {
  const [, salt, hash] = /^([\da-f]{2,128}):([\da-f]{128})$/.exec(text) ?? []
  return salt === undefined || hash === undefined ? null : scryptText(Buffer.from(salt), Buffer.from(hash, 'hex'))
}

export function appPasswordsOf(database: ReferenceDatabase, did: Did): { appPassword: NewAppPassword; hash: string }[] {
  const rows = database.all<{ name: string; passwordScrypt: string; createdAt: string; privileged: number }>(
    'SELECT name, passwordScrypt, createdAt, privileged FROM app_password WHERE did = ?',
    did,
  )
  return rows.flatMap(({ name, passwordScrypt, createdAt, privileged }) => {
    const hash = hashOf(passwordScrypt)
    const grants = { privileged: privileged === 1, personalDetails: false }
    return hash === null
      ? []
      : [{ appPassword: { name, createdAt: instant(createdAt), scope: null, expiresAt: null, ...grants }, hash }]
  })
}

/** Returns sessions opened with a password that have not ended, and how many of those have ids of another form. */
export function sessionsOf(
  database: ReferenceDatabase,
  did: Did,
  now: Millis,
): { sessions: FormerSession[]; lost: number } {
  const rows = database.all<{ id: string; nextId: string | null; appPasswordName: string | null; expiresAt: string }>(
    'SELECT id, nextId, appPasswordName, expiresAt FROM refresh_token WHERE did = ?',
    did,
  )
  const alive = rows.filter(({ expiresAt }) => instant(expiresAt) > now)
  const sessions = alive
    .filter(({ id, nextId }) => isTokenId(id) && (nextId === null || isTokenId(nextId)))
    .map(({ id, nextId, appPasswordName, expiresAt }) => ({
      did,
      tokenId: id,
      successorId: nextId,
      appPassword: appPasswordName,
      // No token of the reference lives longer.
      expiresAt: Math.min(instant(expiresAt), now + REFRESH_TTL_SECS * 1000),
    }))
  return { sessions, lost: alive.length - sessions.length }
}

interface TokenRow {
  clientId: string
  clientAuth: string
  parameters: string
  currentRefreshToken: string | null
  createdAt: string
  updatedAt: string
}

/** Returns the app sessions that can continue here, and how many of those that have not ended cannot. */
export function appSessionsOf(
  database: ReferenceDatabase,
  did: Did,
  now: Millis,
): { sessions: FormerOAuthSession[]; lost: number } {
  const rows = database.all<TokenRow>(
    'SELECT clientId, clientAuth, parameters, currentRefreshToken, createdAt, updatedAt FROM token WHERE did = ?',
    did,
  )
  const read = rows.map((row) => appSessionOf(did, row))
  const alive = read.filter((session) => session === null || isAlive(session, now))
  const sessions = alive.filter((session) => session !== null)
  return { sessions, lost: alive.length - sessions.length }
}

function isAlive(session: FormerOAuthSession, now: Millis): boolean {
  const { expiresAt, idleExpiresAt } = endsOf(session)
  return expiresAt > now && idleExpiresAt > now
}

/** Returns null for a session that has no refresh token, or is bound to no key. */
function appSessionOf(did: Did, row: TokenRow): FormerOAuthSession | null {
  const { scope, dpop_jkt: jkt } = objectOf(row.parameters)
  const { currentRefreshToken: refreshToken } = row
  if (refreshToken === null || !isFormerRefreshToken(refreshToken)) return null
  if (typeof jkt !== 'string' || typeof scope !== 'string') return null
  const { kid, alg, jkt: keyJkt } = objectOf(row.clientAuth)
  const isConfidential = typeof kid === 'string' && typeof alg === 'string' && typeof keyJkt === 'string'
  return {
    did,
    clientId: row.clientId,
    scope,
    jkt,
    clientKey: isConfidential ? { kid, alg, jkt: keyJkt } : null,
    refreshToken,
    createdAt: instant(row.createdAt),
    refreshedAt: instant(row.updatedAt),
  }
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Invite codes with their uses. */
export function invitesOf(database: ReferenceDatabase): InviteCode[] {
  const codes = database.all<Omit<InviteCode, 'createdAt' | 'disabled'> & { createdAt: string; disabled: number }>(
    'SELECT code, availableUses AS available, disabled, forAccount, createdBy, createdAt FROM invite_code',
  )
  const uses = Map.groupBy(
    database.all<{ code: string; usedBy: string; usedAt: string }>('SELECT code, usedBy, usedAt FROM invite_code_use'),
    ({ code }) => code,
  )
  return codes.map((code) => ({
    ...code,
    disabled: code.disabled === 1,
    createdAt: instant(code.createdAt),
    uses: (uses.get(code.code) ?? []).map(({ usedBy, usedAt }) => ({ usedBy, usedAt: instant(usedAt) })),
  }))
}

/** Yields the browsers in which accounts are signed in, if they would still be signed in here. */
export function* browsersIn(
  database: ReferenceDatabase,
  now: Millis,
): Generator<NonNullable<ReturnType<typeof formerBrowser>>> {
  for (let last = ''; ;) {
    const devices = database.all<{ id: string; sessionId: string; lastSeenAt: string }>(
      `SELECT id, sessionId, lastSeenAt FROM device WHERE id > ? ORDER BY id LIMIT ${PAGE}`,
      last,
    )
    if (devices.length === 0) return
    last = devices.at(-1)!.id
    for (const { id, sessionId, lastSeenAt } of devices) {
      const device = { id, sessionId, seenAt: instant(lastSeenAt), signIns: signInsIn(database, id) }
      const browser = formerBrowser(device, now)
      if (browser !== null) yield browser
    }
  }
}

function signInsIn(database: ReferenceDatabase, deviceId: string): { did: Did; signedInAt: Millis }[] {
  const rows = database.all<{ did: string; updatedAt: string }>(
    'SELECT did, updatedAt FROM account_device WHERE deviceId = ? ORDER BY updatedAt DESC',
    deviceId,
  )
  return rows.flatMap(({ did: text, updatedAt }) => {
    const did = parseDid(text)
    return did === null ? [] : [{ did, signedInAt: instant(updatedAt) }]
  })
}

/** Counts what is left behind, by what it is. */
export function leftBehind(
  database: ReferenceDatabase,
  now: Millis,
): { mailedCodes: number; requests: number; consents: number } {
  const count = (text: string, ...values: string[]) => database.get<{ count: number }>(text, ...values)!.count
  return {
    mailedCodes: count('SELECT count(*) AS count FROM email_token'),
    requests: count(
      'SELECT count(*) AS count FROM authorization_request WHERE expiresAt > ?',
      new Date(now).toISOString(),
    ),
    consents: count('SELECT count(*) AS count FROM authorized_client'),
  }
}
