/** App passwords: the server generates them and shows them once. Their grants and their end never change. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, type Refusal } from '../../../http/errors.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import { isUseDue } from '../../../platform/running/last-use.ts'
import { accountLock, isUniqueViolation, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { base32 } from '../../../protocol/cid.ts'
import { accountStatus, refuseTakendown } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import {
  expectsForeignHashes,
  hashGeneratedElsewhere,
  hashGeneratedPassword,
} from '../../identity/passwords/passwords.ts'
import { scopeOfTerms, type AccessTerms } from './access-terms.ts'
import {
  deleteAppPassword,
  findAppPassword,
  insertAppPassword,
  listAppPasswords,
  replaceAppPasswordHash,
  setLastUse,
  type AppPassword,
  type NewAppPassword,
} from './app-password-store.ts'
import { deleteSessionsOfAppPassword } from './session-store.ts'

const MAX_NAME_CHARS = 255
const MAX_PER_ACCOUNT = 1000
const formatPattern = /^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/
const SECRET_BYTES = 10

/** Create an app password that is limited to scopes. Throws as `scopeOfTerms` and `createAppPassword` do. */
export async function createScopedAppPassword(
  exchange: Exchange,
  did: Did,
  name: string,
  terms: AccessTerms,
): Promise<AppPassword & { password: string }> {
  const scope = scopeOfTerms(exchange.ctx, terms)
  const { expiresAt } = terms
  return createAppPassword(exchange, did, { name, privileged: false, personalDetails: false, scope, expiresAt })
}

/**
 * Create an app password. Returns it with the secret, of which only a hash is stored.
 *
 * Throws `InvalidRequest` if the name is blank, too long or taken, or if the account has too many, and
 * `AccountTakedown`.
 */
export async function createAppPassword(
  exchange: Exchange,
  did: Did,
  wanted: Omit<NewAppPassword, 'createdAt'>,
): Promise<AppPassword & { password: string }> {
  const { ctx } = exchange
  if (wanted.name.trim() === '' || wanted.name.length > MAX_NAME_CHARS)
    throw invalidRequest('The name must not be blank or longer than 255 characters')
  const taken = () => invalidRequest(`An app password with that name already exists: ${wanted.name}`)
  const password = base32(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))).replace(/(.{4})(?=.)/g, '$1-')
  const hash = await hashGeneratedPassword(ctx, did, password)
  const made = { ...wanted, createdAt: ctx.clock.now(), lastUsedAt: null }
  try {
    await ctx.db.transaction(async (tx) => {
      await exchange.revalidate(tx)
      refuseTakendown(await accountStatus(tx, did))
      const known = await listAppPasswords(tx, did)
      if (known.length >= MAX_PER_ACCOUNT)
        throw invalidRequest('The account has reached the maximum number of app passwords')
      if (known.some(({ name }) => name === made.name)) throw taken()
      await insertAppPassword(tx, did, made, hash)
      await announceIn(tx, exchange, 'appPasswordMade', did, { name: made.name })
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw taken()
    throw error
  }
  return { ...made, password }
}

/**
 * Delete an app password and the sessions that it opened. Returns whether there was one with that name. Whether the
 * caller still may is asked only then: as at the reference, the tokens of a deleted account revoke nothing and get 200.
 */
export const revokeAppPassword = (exchange: Exchange, did: Did, name: string): Promise<boolean> =>
  exchange.ctx.db.transaction(async (tx) => {
    if (!(await endAppPassword(exchange, tx, did, name))) return false
    await exchange.revalidate(tx)
    return true
  })

/** Like `revokeAppPassword`, in a transaction of the caller, who revalidates. */
export async function endAppPassword(exchange: Exchange, tx: Tx, did: Did, name: string): Promise<boolean> {
  await deleteSessionsOfAppPassword(tx, did, name)
  if ((await deleteAppPassword(tx, did, name)) === 0) return false
  await announceIn(tx, exchange, 'appPasswordRevoked', did, { name })
  return true
}

/** Whether the app password has expired. */
export const hasExpired = ({ expiresAt }: Pick<AppPassword, 'expiresAt'>, now: Millis): boolean =>
  expiresAt !== null && now >= expiresAt

/**
 * Note, in the transaction that opens or extends a session, that its app password is used. Writes at most once an hour.
 */
export async function noteUse(tx: Tx, did: Did, appPassword: AppPassword, now: Millis): Promise<void> {
  const { lastUsedAt } = appPassword
  if (isUseDue(lastUsedAt, now)) await setLastUse(tx, did, appPassword, now)
}

/**
 * A DID that cannot exist. If an account is unknown, the password is hashed for this DID, so that the work is the same.
 */
const NO_ACCOUNT = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did

/**
 * Returns the account's app password that matches the text, or null if none does or it has expired. Call `revalidate`
 * in the transaction that opens the session: it throws `wrong` if the app password was revoked. Text without the format
 * of an app password is rejected without hashing.
 */
export async function matchAppPassword(
  ctx: Context,
  did: Did | null,
  password: string,
  wrong: () => Refusal,
): Promise<{ appPassword: AppPassword; revalidate: Revalidate } | null> {
  if (!formatPattern.test(password)) return null
  const hash = await hashGeneratedPassword(ctx, did ?? NO_ACCOUNT, password)
  const known = did && (await findAppPassword(ctx.db, did, { hash }))
  const appPassword = known ?? (await renewedAppPassword(ctx, did, password, hash))
  if (!appPassword || !did || hasExpired(appPassword, ctx.clock.now())) return null
  const revalidate: Revalidate = async (reader) => {
    if ((await findAppPassword(reader, did, { hash })) === null) throw wrong()
  }
  return { appPassword, revalidate }
}

/**
 * Finds an app password by the hash that the reference implementation made, and replaces that hash by `hash`. Does the
 * same work for every account.
 */
async function renewedAppPassword(
  ctx: Context,
  did: Did | null,
  password: string,
  hash: string,
): Promise<AppPassword | null> {
  if (!(await expectsForeignHashes(ctx))) return null
  const foreign = await hashGeneratedElsewhere(ctx, did ?? NO_ACCOUNT, password)
  if (did === null || (await findAppPassword(ctx.db, did, { hash: foreign })) === null) return null
  await ctx.db.transactionOn(accountLock(did), (tx) => replaceAppPasswordHash(tx, did, foreign, hash))
  return findAppPassword(ctx.db, did, { hash })
}
