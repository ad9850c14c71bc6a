/**
 * Changes of the factors of an account. The caller has already asked for what a sign-in requires: the password, and a
 * factor if there is one.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { updateEmailAuthFactor } from './email-factor-store.ts'
import { attemptCode, attemptRefused } from './factor-attempts.ts'
import { forgetFactorFailures } from './factor-failure-store.ts'
import { hasHeldFactor, summaryOf } from './factor-summary-store.ts'
import { deleteFactorRecoveryCodes } from './factor-recovery-code-store.ts'
import { makeFactorRecoveryCodes, recoveryCodesBeside } from './factor-recovery-codes.ts'
import { deletePasskeysOf } from './passkey-store.ts'
import { hasPasskeyOrigin } from './passkey-ceremonies.ts'
import {
  forgetCodesOfNothing,
  listedPasskeys,
  MAX_PASSKEYS,
  type ListedPasskey,
  type RevalidateIn,
} from './passkeys.ts'
import { deleteTrustedBrowsersOf, trustedBrowsersOf, type TrustedBrowser } from './trusted-browser-store.ts'
import { confirmStoredTotp, deleteTotp, findTotp, type StoredTotp } from './totp-store.ts'
import { isBeingSetUp, setUpTotp, totpSpender, type TotpSetup } from './totp.ts'

/** The factors of an account, as its holder sees them. */
export interface ListedFactors {
  emailAuthFactor: boolean
  totp: { confirmedAt: Millis; lastUsedAt: Millis | null } | null
  passkeys: readonly ListedPasskey[]
  mayAddPasskey: boolean
  recoveryCodes: number
  trusted: readonly TrustedBrowser[]
}

export async function factorsOf(
  ctx: Pick<Context, 'db' | 'clock' | 'config'>,
  account: Account,
): Promise<ListedFactors> {
  const { db, clock, config } = ctx
  const { did, emailAuthFactor } = account
  const [totp, passkeys, { recoveryCodes }, trusted] = await Promise.all([
    findTotp(db, did),
    listedPasskeys(ctx, did),
    summaryOf(db, did),
    trustedBrowsersOf(db, did, clock.now()),
  ])
  return {
    emailAuthFactor,
    passkeys,
    mayAddPasskey: hasPasskeyOrigin(config) && passkeys.length < MAX_PASSKEYS,
    recoveryCodes,
    trusted,
    totp: totp === null || totp.confirmedAt === null ? null : { ...totp, confirmedAt: totp.confirmedAt },
  }
}

/**
 * Begin to set up an authenticator app, which does not replace another one: that has to be removed first. Throws
 * `InvalidRequest`.
 */
export const beginTotp = (ctx: Context, account: Account, revalidate: RevalidateIn): Promise<TotpSetup> =>
  setUpTotp(ctx, account, async (tx) => {
    await revalidate(tx)
    await refuseSecondApp(tx, account.did)
  })

async function refuseSecondApp(reader: Reader, did: Did): Promise<void> {
  if ((await summaryOf(reader, did)).totp) throw invalidRequest('The account already has an authenticator app')
}

/**
 * Confirm an app with its first code. Returns new recovery codes; null if the account has some already. Throws
 * `InvalidToken` if the code is wrong, or if no app is being set up, and `RateLimitExceeded` after too many wrong
 * codes.
 */
export async function confirmTotp(exchange: Exchange, did: Did, code: string): Promise<string[] | null> {
  const { ctx } = exchange
  const now = ctx.clock.now()
  const isSettingUp = (stored: StoredTotp) => isBeingSetUp(stored, now)
  const spend = await totpSpender(ctx, isSettingUp)
  const outcome = await ctx.db.transactionOn(accountLock(did), async (tx) => {
    await exchange.revalidate(tx)
    // Count wrong codes only while an app is being set up: otherwise, a stolen session could use up the attempts of the
    // sign-in.
    const stored = await findTotp(tx, did)
    if (stored === null || !isSettingUp(stored)) return 'wrong'
    const fault = await attemptCode(exchange, tx, did, () => spend(tx, did, code.replace(/\s/g, '')))
    if (fault) return fault
    const before = await summaryOf(tx, did)
    await confirmStoredTotp(tx, did, now)
    await deleteTrustedBrowsersOf(tx, did)
    await announceIn(tx, exchange, 'totpAdded', did)
    return recoveryCodesBeside(tx, did, before)
  })
  if (typeof outcome === 'string') throw attemptRefused(exchange, outcome)
  return outcome
}

/** Remove the authenticator app. If it was the last factor that the holder keeps, remove the recovery codes too. */
export const removeTotp = (exchange: Exchange, did: Did, revalidate: RevalidateIn): Promise<void> =>
  exchange.ctx.db.transactionOn(accountLock(did), async (tx) => {
    await revalidate(tx)
    if ((await deleteTotp(tx, did)) === 0) return
    await forgetCodesOfNothing(tx, did)
    await deleteTrustedBrowsersOf(tx, did)
    await announceIn(tx, exchange, 'totpRemoved', did)
  })

/**
 * Replace the recovery codes, which the holder may have lost or used up. Returns the new ones. Throws `InvalidRequest`
 * if there is no factor that they could replace: otherwise, someone who knows the password could make codes in advance,
 * for the day on which the account gets a factor.
 */
export const renewRecoveryCodes = (exchange: Exchange, did: Did, revalidate: RevalidateIn): Promise<string[]> =>
  exchange.ctx.db.transactionOn(accountLock(did), async (tx) => {
    await revalidate(tx)
    if (!hasHeldFactor(await summaryOf(tx, did)))
      throw invalidRequest('Recovery codes require an authenticator app or a passkey')
    await announceIn(tx, exchange, 'recoveryCodesMade', did)
    return makeFactorRecoveryCodes(tx, did)
  })

/**
 * Take all second factors from an account whose holder has lost them, in the caller's transaction. The operator has
 * verified who asks. Returns whether there were any.
 */
export async function resetFactors(
  exchange: Exchange,
  tx: Tx,
  { did, emailAuthFactor }: Account,
  actor: string,
): Promise<boolean> {
  const hadFactors = emailAuthFactor || hasHeldFactor(await summaryOf(tx, did))
  await deleteFactors(tx, did)
  await updateEmailAuthFactor(tx, did, false)
  if (hadFactors) await announceIn(tx, exchange, 'factorsReset', did, { actor })
  return hadFactors
}

/** Delete all factors of an account. */
export async function deleteFactors(tx: Tx, did: Did): Promise<void> {
  const all = [deleteTotp, deletePasskeysOf, deleteFactorRecoveryCodes, forgetFactorFailures, deleteTrustedBrowsersOf]
  for (const forget of all) await forget(tx, did)
}
