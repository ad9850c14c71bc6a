/**
 * Codes by mail that open the release of a share. Each works once, within an hour.
 *
 * Strangers can have codes sent to an account, so the rows of issued codes, which survive a restart, bound their
 * number. An attacker cannot use the bound to lock the holder out: a code is withheld only while the holder has others
 * that work. An unconfirmed address that has had too many mails gets no codes either; none is issued then.
 */
import { createHash } from 'node:crypto'
import { DAY_MILLIS, HOUR_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { isStorageOutage } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountAt, accountOf, type Account } from '../accounts/accounts.ts'
import { addMail, askedBy, loadMailTexts, recoveryCodeMail, withinBound, type Told } from '../mails/mails.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { countRecoveryCodes, insertRecoveryCode, takeRecoveryCode } from './recovery-code-store.ts'

const CODE_TTL_MILLIS = HOUR_MILLIS
/** Most codes of an account that work at the same time. */
const MAX_CODES = 5
/** After this many codes in a day, an account has one at a time. */
const MAX_CODES_PER_DAY = 15
/** No DID is longer. */
const MAX_IDENTIFIER_CHARS = 2048

/** Whether the holder may recover the account. A deactivated account may be recovered, a taken-down one may not. */
export const mayRecover = (account: Account | null): account is Account =>
  account !== null && statusOf(account) !== 'takendown'

/**
 * Mail a code to the account with this handle or DID, if there is one. The lookup runs after the response and every
 * identifier causes the same writes, so neither the response nor its timing reveals whether there is an account. Throws
 * only if nothing can be stored at the moment, for every identifier alike; any other failure is logged.
 */
export async function requestRecovery(exchange: Exchange, identifier: string): Promise<void> {
  if (identifier.length > MAX_IDENTIFIER_CHARS) return
  const { ctx } = exchange
  const key = createHash('sha256').update(identifier).digest('hex')
  const payload = { identifier, told: askedBy(exchange) }
  try {
    await ctx.db.transaction((tx) => ctx.steps.add(tx, recoveryRequestStep, { key, payload }))
  } catch (error) {
    if (isStorageOutage(error)) throw error
    ctx.log.error('could not store a request for a recovery code', { error })
  }
}

export const recoveryRequestStep: StepKind<{ identifier: string; told: Told }> = {
  name: 'recovery-request',
  concurrency: 4,
  maxSteps: 5000,
  maxTries: 10,
  firstWaitSecs: 1,
  maxWaitSecs: 60,
  async take(ctx, { payload: { identifier, told }, end }) {
    const counted = countedFor(await accountAt(ctx.db, identifier), 'anyone')
    await withinBound(ctx, counted, (isAllowed) =>
      ctx.db.transaction(async (tx) => {
        const account = await accountAt(tx, identifier)
        if (!(await end(tx)) || !isAllowed || !mayRecover(account)) return false
        return mailRecoveryCode(ctx, tx, account, told, counted)
      }),
    )
  },
}

const countedFor = (account: Account | null, causedBy: 'anyone' | 'holder') => ({
  did: account?.did ?? null,
  to: account?.email ?? null,
  what: 'recovery',
  causedBy,
})

/**
 * Mail a code to a holder who is signed in. Returns false if there are too many working codes or mails, if the account
 * has no address or is taken down, or if no master key is configured.
 */
export async function startRecovery(exchange: Exchange, did: Did): Promise<boolean> {
  const { ctx } = exchange
  const known = await accountOf(ctx.db, did)
  await loadMailTexts(ctx, known)
  const counted = countedFor(known, 'holder')
  return withinBound(ctx, counted, (isAllowed) =>
    ctx.db.transaction(async (tx) => {
      const account = await accountOf(tx, did)
      return isAllowed && mayRecover(account) && mailRecoveryCode(ctx, tx, account, askedBy(exchange), counted)
    }),
  )
}

async function mailRecoveryCode(
  ctx: Context,
  tx: Tx,
  account: Account,
  told: Told,
  { to, what, causedBy }: ReturnType<typeof countedFor>,
): Promise<boolean> {
  const { did, email } = account
  const now = ctx.clock.now()
  if (email === null || ctx.config.signingKeyMasterKey === null || !(await isMailDue(tx, did, now))) return false
  const { token, hash } = newToken()
  await insertRecoveryCode(tx, did, hash, now)
  const mail = await recoveryCodeMail(ctx, { ...account, email }, token, told)
  await addMail(ctx, tx, {
    key: `recovery ${hash}`,
    did,
    what,
    causedBy,
    countedFor: to,
    mail,
    goodUntil: now + CODE_TTL_MILLIS,
  })
  return true
}

async function isMailDue(tx: Tx, did: Did, now: number): Promise<boolean> {
  const perDay = await countRecoveryCodes(tx, did, { since: now - DAY_MILLIS, now })
  const working = await countRecoveryCodes(tx, did, { since: now - CODE_TTL_MILLIS, now })
  return working < (perDay < MAX_CODES_PER_DAY ? MAX_CODES : 1)
}

/** Use up a code, by its hash. Returns false unless it is an unused one of the account, and at most an hour old. */
export async function spendRecoveryCode(
  { clock }: Pick<Context, 'clock'>,
  tx: Tx,
  did: Did,
  codeHash: string,
): Promise<boolean> {
  const now = clock.now()
  return (await takeRecoveryCode(tx, did, codeHash, { since: now - CODE_TTL_MILLIS, now })) > 0
}
