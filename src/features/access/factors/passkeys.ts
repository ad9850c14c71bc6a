/**
 * Passkeys of accounts. A passkey signs in without the password, because the authenticator has verified its user, and
 * counts as the second factor beside the password. Each response counts once.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, invalidToken, type Refusal } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import { noteFailedSignIn } from '../../identity/passwords/passwords.ts'
import { hasHeldFactor, summaryOf } from './factor-summary-store.ts'
import { deleteFactorRecoveryCodes } from './factor-recovery-code-store.ts'
import { recoveryCodesBeside } from './factor-recovery-codes.ts'
import {
  checkCreation,
  checkSignature,
  creationOptions,
  hasPasskeyOrigin,
  passkeyIn,
  requestOptions,
  rpIdOf,
  type CeremonyFault,
  type PasskeyOptions,
} from './passkey-ceremonies.ts'
import { spendChallenge, type PasskeyUse } from './passkey-challenges.ts'
import {
  deletePasskey,
  findPasskey,
  hasPasskeys,
  insertPasskey,
  notePasskeyUse,
  passkeysOf,
  setPasskeyName,
  type StoredPasskey,
} from './passkey-store.ts'
import { deleteTrustedBrowsersOf } from './trusted-browser-store.ts'

export const MAX_PASSKEYS = 10
export const MAX_PASSKEY_NAME_CHARS = 60

/** A passkey, as its holder sees it. */
export type ListedPasskey = Pick<StoredPasskey, 'credentialId' | 'name' | 'isSynced' | 'createdAt' | 'lastUsedAt'> & {
  /** Whether the passkey is bound to a host name that this server no longer has. Browsers do not offer it here. */
  isElsewhere: boolean
}

export const listedPasskeys = async ({ db, config }: Pick<Context, 'db' | 'config'>, did: Did) =>
  (await passkeysOf(db, did)).map(({ credentialId, name, isSynced, createdAt, lastUsedAt, rpId }): ListedPasskey => ({
    credentialId,
    name,
    isSynced,
    createdAt,
    lastUsedAt,
    isElsewhere: rpId !== rpIdOf(config),
  }))

const refusals: Readonly<Record<CeremonyFault | 'behind', () => Refusal>> = {
  refused: () => invalidToken('The passkey was not accepted'),
  late: () => invalidToken('The passkey challenge has expired'),
  behind: () => invalidToken('The passkey may have been copied'),
}

// Changes

/** Throws a `Refusal` if the proof of the holder is no longer valid. */
export type RevalidateIn = (tx: Tx) => Promise<void>

const usedForAdding = (did: Did, binding: string): PasskeyUse => ({ purpose: 'add', did, binding })

/**
 * Begin to add a passkey, for a holder who has just re-authenticated. `binding` is the secret that the browser has to
 * present with the response. Throws `InvalidRequest` if there are too many.
 */
export async function beginPasskey(
  ctx: Context,
  account: Account,
  binding: string,
  revalidate: RevalidateIn,
): Promise<PasskeyOptions> {
  const { did } = account
  const known = await ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    return passkeysWithPlace(tx, did)
  })
  return creationOptions(ctx, account, known, usedForAdding(did, binding))
}

async function passkeysWithPlace(reader: Reader, did: Did): Promise<StoredPasskey[]> {
  const known = await passkeysOf(reader, did)
  if (known.length >= MAX_PASSKEYS) throw invalidRequest('The account has reached the maximum number of passkeys')
  return known
}

interface NewPasskey {
  /** The response of the browser, as JSON. */
  answer: string
  name: string
  binding: string
}

/**
 * Add the passkey that a device has made. Returns new recovery codes; null if the account has some already. Throws
 * `InvalidToken`, and `InvalidRequest` if the account has too many passkeys, or if any account already has this one.
 */
export async function addPasskey(
  exchange: Exchange,
  { did }: Account,
  { answer, name, binding }: NewPasskey,
): Promise<string[] | null> {
  const { ctx } = exchange
  const checked = await checkCreation(ctx, answer, usedForAdding(did, binding))
  if (typeof checked === 'string') throw refusals[checked]()
  const { challenge, expiresAt, passkey } = checked
  const now = ctx.clock.now()
  return ctx.db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    if (!(await spendChallenge(tx, challenge, expiresAt, now))) throw refusals.refused()
    const known = await passkeysWithPlace(tx, did)
    const before = await summaryOf(tx, did)
    const shownName = plainName(name, MAX_PASSKEY_NAME_CHARS) || `Passkey ${known.length + 1}`
    if ((await insertPasskey(tx, { ...passkey, did, name: shownName, createdAt: now })) === 0)
      throw invalidRequest('The passkey is already in use')
    await deleteTrustedBrowsersOf(tx, did)
    await announceIn(tx, exchange, 'passkeyAdded', did)
    return recoveryCodesBeside(tx, did, before)
  })
}

/** Returns false if the account has no such passkey. */
export const renamePasskey = async (
  { db }: Pick<Context, 'db'>,
  did: Did,
  credentialId: string,
  name: string,
): Promise<boolean> => {
  const shownName = plainName(name, MAX_PASSKEY_NAME_CHARS)
  if (shownName === '') throw invalidRequest('The name must not be blank')
  return (await db.transaction((tx) => setPasskeyName(tx, did, credentialId, shownName))) > 0
}

/** Remove a passkey. If it was the last factor that the holder keeps, remove the recovery codes too. */
export const removePasskey = (
  exchange: Exchange,
  did: Did,
  credentialId: string,
  revalidate: RevalidateIn,
): Promise<void> =>
  exchange.ctx.db.transactionOn(accountLock(did), async (tx) => {
    await revalidate(tx)
    if ((await deletePasskey(tx, did, credentialId)) === 0) return
    await forgetCodesOfNothing(tx, did)
    await deleteTrustedBrowsersOf(tx, did)
    await announceIn(tx, exchange, 'passkeyRemoved', did)
  })

/** Delete the recovery codes if no factor is left that they could replace. */
export async function forgetCodesOfNothing(tx: Tx, did: Did): Promise<void> {
  if (!hasHeldFactor(await summaryOf(tx, did))) await deleteFactorRecoveryCodes(tx, did)
}

// Use

/**
 * Returns what a browser needs to sign in with a passkey of an account; `did` is null for any account. Returns null,
 * without calling `use`, if there is no passkey to offer.
 */
export async function offerPasskey(
  ctx: Context,
  did: Did | null,
  use: () => PasskeyUse,
): Promise<PasskeyOptions | null> {
  if (!hasPasskeyOrigin(ctx.config)) return null
  if (did === null) return (await hasPasskeys(ctx.db)) ? requestOptions(ctx, [], use()) : null
  const rpId = rpIdOf(ctx.config)
  const usable = (await passkeysOf(ctx.db, did)).filter((passkey) => passkey.rpId === rpId)
  return usable.length > 0 ? requestOptions(ctx, usable, use()) : null
}

export interface PasskeyHolder {
  account: Account
  /** Throws in a transaction if the passkey has been removed. */
  revalidate: Revalidate
}

/**
 * Use a passkey's response, once. Returns the holder of the passkey. Throws `InvalidToken` if anything is wrong with
 * the response, or if the signature counter did not increase: someone may have copied the passkey, and the holder is
 * notified.
 */
export async function usePasskey(exchange: Exchange, answer: string, use: PasskeyUse): Promise<PasskeyHolder> {
  const { ctx } = exchange
  const id = passkeyIn(answer)
  const passkey = id === null ? null : await findPasskey(ctx.db, id)
  const refuse = (fault: keyof typeof refusals, account: Account | null = null): never => {
    noteFailedSignIn(exchange, `passkey ${fault}`, account)
    throw refusals[fault]()
  }
  if (!passkey || (use.did !== null && passkey.did !== use.did)) return refuse('refused')
  const checked = await checkSignature(ctx, answer, use, passkey)
  if (typeof checked === 'string') return refuse(checked, await accountOf(ctx.db, passkey.did))
  const { challenge, expiresAt, signCount } = checked
  const { credentialId, did } = passkey
  const now = ctx.clock.now()
  const outcome = await ctx.db.transaction(async (tx) => {
    const current = await findPasskey(tx, credentialId)
    const account = await accountOf(tx, did)
    if (current?.did !== did || !account || !(await spendChallenge(tx, challenge, expiresAt, now))) return 'refused'
    if (isBehind(signCount, current.signCount)) {
      await announceIn(tx, exchange, 'passkeyCopied', did)
      return 'behind'
    }
    await notePasskeyUse(tx, credentialId, { signCount, now })
    return account
  })
  if (typeof outcome === 'string') return refuse(outcome, await accountOf(ctx.db, did))
  return {
    account: outcome,
    async revalidate(reader) {
      if ((await findPasskey(reader, credentialId))?.did !== did) throw refusals.refused()
    },
  }
}

/** Web Authentication Level 3, 7.2, step 22. Devices without a counter always report 0. */
const isBehind = (told: number, stored: number): boolean => (told > 0 || stored > 0) && told <= stored
