/**
 * Accounts, as the other features see them: who lives here, in which state, and with which key.
 *
 * A row exists exactly when the account does. Routes stand in files of their own, because guards look up accounts
 * and routes need guards.
 */
import { Refusal } from '../../http/errors.ts'
import { perContext, type Context } from '../../platform/context.ts'
import type { Reader } from '../../platform/database.ts'
import { parseDid, parseHandle, type Did } from '../../protocol/identifiers.ts'
import { signingKey, type SigningKey } from '../../protocol/keys.ts'
import { findByDid, findByHandle, findSigningKey, findStatus, statusOf, type Account, type AccountStatus } from './account-store.ts'

export { insertAccount, listAfter as accountsAfter, updateHandle as setHandle } from './account-store.ts'
export type { Account, AccountPlace, AccountStatus } from './account-store.ts'

export const accountOf = (reader: Reader, did: Did): Promise<Account | null> => findByDid(reader, did)

/** By DID or handle, whatever the state of the account. */
export async function accountAt(reader: Reader, identifier: string): Promise<Account | null> {
  const did = parseDid(identifier)
  if (did) return findByDid(reader, did)
  const handle = parseHandle(identifier)
  return handle && findByHandle(reader, handle)
}

/** Null when there is no such account. */
export const accountStatus = (reader: Reader, did: Did): Promise<AccountStatus | null> => findStatus(reader, did)

/** The state as the wire tells it: `active`, and why not. */
export function activityOf(account: Pick<Account, 'deactivatedAt' | 'takedownRef'>): { active: boolean; status?: Exclude<AccountStatus, 'active'> } {
  const status = statusOf(account)
  return status === 'active' ? { active: true } : { active: false, status }
}

export const accountNotFound = () => new Refusal(403, 'AccountNotFound', 'Account not found')
export const accountTakedown = () => new Refusal(401, 'AccountTakedown', 'Account has been taken down')
export const accountDeactivated = () => new Refusal(401, 'AccountDeactivated', 'Account is deactivated')

/** For what a deactivated account may still do. */
export function refuseTakendown(status: AccountStatus | null): asserts status is 'active' | 'deactivated' {
  if (status === null) throw accountNotFound()
  if (status === 'takendown') throw accountTakedown()
}

/** For writes: only an active account makes them. */
export function requireActive(status: AccountStatus | null): asserts status is 'active' {
  refuseTakendown(status)
  if (status === 'deactivated') throw accountDeactivated()
}

/** Keys kept unwrapped, the oldest dropped first. */
const MAX_SIGNING_KEYS = 10_000

const signingKeys = perContext(() => new Map<string, SigningKey>())

/** The key that signs the account's repository and its service tokens. Null when there is no such account. */
export async function signingKeyOf(ctx: Context, reader: Reader, did: Did): Promise<SigningKey | null> {
  const row = await findSigningKey(reader, did)
  if (!row) return null
  const keys = signingKeys(ctx)
  const kept = keys.get(row.signingKey)
  if (kept) return kept
  const key = signingKey('p256', ctx.vault.unwrap(row.wrapped))
  if (keys.size >= MAX_SIGNING_KEYS) keys.delete(keys.keys().next().value!)
  keys.set(row.signingKey, key)
  return key
}
