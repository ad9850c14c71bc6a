/** SQL of the `account` table. */
import { parseDid, parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { nothingBeside, sql, type Beside, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { DidPlace } from '../../../http/paged-list.ts'
import { languages, type Language } from '../../../protocol/languages.ts'
import { statusOf, type AccountStatus } from '../../../protocol/account-status.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { validColumn, type Revalidation } from '../../../http/revalidation.ts'

export interface Account {
  did: Did
  /**
   * The oldest of its handles; null if it has none, which is sent as `handle.invalid`. Others are in `further_handle`.
   */
  handle: Handle | null
  email: string | null
  emailConfirmedAt: Millis | null
  createdAt: Millis
  deactivatedAt: Millis | null
  /** When a deactivated account is to be deleted. */
  deleteAfter: Millis | null
  takedownRef: string | null
  invitesDisabled: boolean
  hasPassword: boolean
  /**
   * Whether a sign-in with the password needs a mailed code: the holder has switched that on, and the address is
   * confirmed.
   */
  emailAuthFactor: boolean
  /**
   * Language of its mails, as its holder last chose it; null if none is known, or if this version does not support it.
   */
  language: Language | null
}

type Flag = 'invitesDisabled' | 'hasPassword' | 'emailAuthFactor'
type Row = Omit<Account, Flag | 'language'> & Record<Flag, number> & { language: string | null }

const factorColumn = sql`CASE WHEN email_confirmed_at IS NULL THEN 0 ELSE email_auth_factor END AS "emailAuthFactor"`
const columns = sql`did, handle, email, email_confirmed_at AS "emailConfirmedAt", created_at AS "createdAt",
  deactivated_at AS "deactivatedAt", delete_after AS "deleteAfter", takedown_ref AS "takedownRef",
  invites_disabled AS "invitesDisabled", language, CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END AS "hasPassword",
  ${factorColumn}`

async function findBy(reader: Reader, condition: Sql): Promise<Account | null> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM account WHERE ${condition}`)
  return row && fromRow(row)
}

const fromRow = <Found extends Row>(row: Found): Omit<Found, keyof Account> & Account => ({
  ...row,
  invitesDisabled: row.invitesDisabled === 1,
  hasPassword: row.hasPassword === 1,
  emailAuthFactor: row.emailAuthFactor === 1,
  language: languages.find((one) => one === row.language) ?? null,
})

/** What a session response says about its account. Apps ask often, so only these columns are read. */
export type SessionAccount = Pick<
  Account,
  'did' | 'handle' | 'email' | 'emailConfirmedAt' | 'emailAuthFactor' | 'deactivatedAt' | 'takedownRef'
>

/** The account of a caller, and whether the caller may still act. */
export async function accountOfCaller(
  reader: Reader,
  did: Did,
  revalidation: Revalidation | null,
): Promise<(SessionAccount & { valid: number }) | null> {
  const row = await reader.get<
    Omit<SessionAccount, 'emailAuthFactor'> & { emailAuthFactor: number; valid: number }
  >(sql`
    SELECT did, handle, email, email_confirmed_at AS "emailConfirmedAt", deactivated_at AS "deactivatedAt",
      takedown_ref AS "takedownRef", ${factorColumn}, ${validColumn(revalidation)} FROM account WHERE did = ${did}`)
  return row && { ...row, emailAuthFactor: row.emailAuthFactor === 1 }
}

export const accountOf = (reader: Reader, did: Did): Promise<Account | null> => findBy(reader, sql`did = ${did}`)
export const accountWithEmail = (reader: Reader, email: string): Promise<Account | null> =>
  findBy(reader, sql`email = ${email.toLowerCase()}`)

/** Returns the accounts after a place, or the first ones if it is null. */
export function accountsAfter(
  reader: Reader,
  place: DidPlace | null,
  limit: number,
): Promise<(DidPlace & Pick<Account, 'deactivatedAt' | 'takedownRef'>)[]> {
  const condition = place === null ? sql`1 = 1` : sql`(created_at, did) > (${place.createdAt}, ${place.did})`
  return reader.all(sql`
    SELECT did, created_at AS "createdAt", deactivated_at AS "deactivatedAt", takedown_ref AS "takedownRef"
    FROM account WHERE ${condition} ORDER BY created_at, did LIMIT ${limit}`)
}

/** Returns accounts whose email address contains the text (all if it is empty), oldest first, after a place. */
export async function accountsByEmail(
  reader: Reader,
  text: string,
  place: DidPlace | null,
  limit: number,
): Promise<Account[]> {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  const matches = text === '' ? sql`1 = 1` : sql`email LIKE ${pattern} ESCAPE '\\'`
  const after = place === null ? sql`1 = 1` : sql`(created_at, did) > (${place.createdAt}, ${place.did})`
  const rows = await reader.all<Row>(
    sql`SELECT ${columns} FROM account WHERE ${matches} AND ${after} ORDER BY created_at, did LIMIT ${limit}`,
  )
  return rows.map(fromRow)
}

/** Finds an account by DID or by any of its handles. Returns null if there is none. */
export async function accountAt(reader: Reader, identifier: string): Promise<Account | null> {
  const condition = identifiedBy(identifier)
  return (
    condition && ((await findBy(reader, condition)) ?? byFurtherHandle(identifier, (holder) => findBy(reader, holder)))
  )
}

/** Finds an account by DID, handle or email address. Returns null if there is none. */
export const accountNamed = (reader: Reader, name: string): Promise<Account | null> =>
  name.includes('@') ? accountWithEmail(reader, name) : accountAt(reader, name)

function identifiedBy(identifier: string): Sql | null {
  const did = parseDid(identifier)
  if (did) return sql`account.did = ${did}`
  const handle = parseHandle(identifier)
  return handle && sql`handle = ${handle}`
}

/** Finds the account that has the handle as a further one. Runs only if no account has it as its first. */
function byFurtherHandle<Found>(
  identifier: string,
  find: (condition: Sql) => Promise<Found | null>,
): Promise<Found | null> | null {
  const handle = parseHandle(identifier)
  return handle && find(sql`account.did = (SELECT did FROM further_handle WHERE further_handle.handle = ${handle})`)
}

/** What reads of public data need to know of an account. */
export interface AccountSummary extends Pick<Account, 'did' | 'handle'> {
  status: AccountStatus
}

/**
 * Finds an account by DID or by any handle; null if there is none. Runs on every read request, so it reads only these
 * columns and those that the caller wants beside them.
 */
export async function accountSummary<Row = unknown>(
  reader: Reader,
  identifier: string,
  beside = nothingBeside,
): Promise<(AccountSummary & { beside: Row }) | null> {
  const condition = identifiedBy(identifier)
  const row =
    condition &&
    ((await summaryRow<Row>(reader, condition, beside)) ??
      (await byFurtherHandle(identifier, (holder) => summaryRow<Row>(reader, holder, beside))))
  return row && { did: row.did, handle: row.handle, status: statusOf(row), beside: row }
}

const summaryRow = <Row>(reader: Reader, condition: Sql, { columns, tables }: Beside) =>
  reader.get<Row & Pick<Account, 'did' | 'handle' | 'deactivatedAt' | 'takedownRef'>>(sql`
    SELECT account.did, handle, deactivated_at AS "deactivatedAt", account.takedown_ref AS "takedownRef"${columns}
    FROM account ${tables} WHERE ${condition}`)

/** Returns null if there is no such account. */
export async function accountStatus(reader: Reader, did: Did): Promise<AccountStatus | null> {
  return (await statusOfCaller(reader, did, null))?.status ?? null
}

/** The status of a caller's account, and whether the caller may still act. */
export async function statusOfCaller(
  reader: Reader,
  did: Did,
  revalidation: Revalidation | null,
): Promise<{ status: AccountStatus; valid: number } | null> {
  const row = await reader.get<Pick<Account, 'deactivatedAt' | 'takedownRef'> & { valid: number }>(
    sql`SELECT deactivated_at AS "deactivatedAt", takedown_ref AS "takedownRef", ${validColumn(revalidation)} FROM account WHERE did = ${did}`,
  )
  return row && { status: statusOf(row), valid: row.valid }
}

export interface NewAccount extends WrappedKey {
  did: Did
  /** Null if the account gets its handle later. */
  handle: Handle | null
  email: string | null
  passwordHash: string | null
  createdAt: Millis
  deactivatedAt: Millis | null
  deleteAfter: Millis | null
  /** Language of its mails; null if none is known. */
  language?: Language | null
}

/** Throws a unique violation if the DID, handle or email address belongs to another account. */
export async function addAccount(tx: Tx, account: NewAccount): Promise<void> {
  const {
    did,
    handle,
    email,
    passwordHash,
    signingKey,
    wrapped,
    createdAt,
    deactivatedAt,
    deleteAfter,
    language = null,
  } = account
  await tx.run(sql`
    INSERT INTO account (did, handle, email, password_hash, signing_key, signing_key_wrapped, created_at, deactivated_at, delete_after, language)
    VALUES (${did}, ${handle}, ${email?.toLowerCase() ?? null}, ${passwordHash}, ${signingKey}, ${wrapped}, ${createdAt},
      ${deactivatedAt}, ${deleteAfter}, ${language})`)
}

/** Throws a unique violation if the handle is the first one of another account. */
export const updateHandle = (tx: Tx, did: Did, handle: Handle | null): Promise<number> =>
  tx.run(sql`UPDATE account SET handle = ${handle} WHERE did = ${did}`)

/** Set an address, not yet confirmed. Throws a unique violation if it belongs to another account. */
export const updateEmail = (tx: Tx, did: Did, email: string): Promise<number> =>
  tx.run(sql`UPDATE account SET email = ${email}, email_confirmed_at = NULL WHERE did = ${did}`)

export const updateEmailConfirmed = (tx: Tx, did: Did, confirmedAt: Millis): Promise<number> =>
  tx.run(sql`UPDATE account SET email_confirmed_at = ${confirmedAt} WHERE did = ${did}`)

/** A null `deactivatedAt` activates the account, and a null `deleteAfter` cancels its deletion. */
export const updateActivation = (
  tx: Tx,
  did: Did,
  { deactivatedAt, deleteAfter }: Pick<Account, 'deactivatedAt' | 'deleteAfter'>,
): Promise<number> =>
  tx.run(sql`UPDATE account SET deactivated_at = ${deactivatedAt}, delete_after = ${deleteAfter} WHERE did = ${did}`)

export const updateTakedown = (tx: Tx, did: Did, takedownRef: string | null): Promise<number> =>
  tx.run(sql`UPDATE account SET takedown_ref = ${takedownRef} WHERE did = ${did}`)

/** Set whether an account may get further invite codes. */
export const allowInvites = (tx: Tx, did: Did, isAllowed: boolean): Promise<number> =>
  tx.run(sql`UPDATE account SET invites_disabled = ${isAllowed ? 0 : 1} WHERE did = ${did}`)

export const deleteAccountRow = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM account WHERE did = ${did}`)

/** An account that is to be deleted, and when. */
export interface DueAccount {
  did: string
  deleteAfter: Millis
}

/** Returns deactivated accounts whose deletion is due and that follow `after`, the longest due first. */
export const dueForDeletion = (
  reader: Reader,
  now: Millis,
  after: DueAccount,
  limit: number,
): Promise<(DueAccount & { did: Did })[]> =>
  reader.all(sql`
    SELECT did, delete_after AS "deleteAfter" FROM account
    WHERE delete_after <= ${now} AND deactivated_at IS NOT NULL AND (delete_after, did) > (${after.deleteAfter}, ${after.did})
    ORDER BY delete_after, did LIMIT ${limit}`)
