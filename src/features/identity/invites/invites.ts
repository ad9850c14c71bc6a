/** The door of invites: codes that allow a sign-up, and who may create them. */
import { randomBytes } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { Account } from '../accounts/accounts.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { base32 } from '../../../protocol/cid.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { codesToCreate } from '../../../protocol/invite-accrual.ts'
import { parseDid, wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { insertCodes, isInviteUsable, listCodesOf, type InviteCode } from './invite-store.ts'

export { findClaimCode, insertClaimCodes, listClaimCodes, revokeClaimCode, type ClaimCode } from './claim-code-store.ts'
export { withNewClaimCodes } from './claim-codes.ts'
export {
  findCodeUsedBy,
  hasUsedInvite,
  inviteBoundTo,
  isInviteUsable,
  isInviteUsedUp,
  keepInvites,
  passOnInvites,
  useInvite,
  type InviteCode,
} from './invite-store.ts'

/** Creator of codes that no account earned, and owner of codes that belong to no account. */
export const OPERATOR = 'admin'
const CODE_CHARS = 10

/** Returns a code such as `pds-example-com-xxxxx-xxxxx`. */
function newCode({ config }: Pick<Context, 'config'>): string {
  const letters = base32(randomBytes(CODE_CHARS)).slice(0, CODE_CHARS)
  return `${new URL(config.publicUrl).hostname.replaceAll('.', '-')}-${letters.slice(0, 5)}-${letters.slice(5)}`
}

export interface Batch {
  forAccount: string
  createdBy: string
  uses: number
  count: number
  disabled?: boolean
}

/** Create codes in the caller's transaction. Returns them. */
export async function makeCodes(
  ctx: Pick<Context, 'config' | 'clock'>,
  tx: Tx,
  { forAccount, createdBy, uses, count, disabled = false }: Batch,
): Promise<string[]> {
  const codes = Array.from({ length: count }, () => newCode(ctx))
  const createdAt = ctx.clock.now()
  await insertCodes(
    tx,
    codes.map((code) => ({ code, available: uses, disabled, forAccount, createdBy, createdAt })),
  )
  return codes
}

/** Returns a code of the operator that can still be used. If there is none, creates one that admits one account. */
export async function usableOperatorCode(ctx: Pick<Context, 'config' | 'clock'>, tx: Tx): Promise<string> {
  for (const { code } of (await listCodesOf(tx, OPERATOR)).filter(isOpen))
    if (await isInviteUsable(tx, code, { handle: null, now: ctx.clock.now() })) return code
  const [made] = await makeCodes(ctx, tx, { forAccount: OPERATOR, createdBy: OPERATOR, uses: 1, count: 1 })
  return made!
}

/** Create the codes that an account has earned since the last call. If its invites are disabled, so are the codes. */
export async function makeEarnedCodes(
  ctx: Context,
  tx: Tx,
  { did, createdAt, invitesDisabled }: { did: Did; createdAt: Millis; invitesDisabled: boolean },
): Promise<void> {
  const { intervalSecs, epochSecs } = ctx.config.invites
  if (!ctx.config.inviteCodeRequired || intervalSecs === 0) return
  const epochAt = epochSecs * 1000
  const own = (await listCodesOf(tx, did)).filter((code) => code.createdBy !== OPERATOR)
  const count = codesToCreate({
    now: ctx.clock.now(),
    createdAt,
    epochAt,
    intervalMillis: intervalSecs * 1000,
    madeSinceEpoch: own.filter((code) => code.createdAt > epochAt).length,
    unused: own.filter(isOpen).length,
  })
  await makeCodes(ctx, tx, { forAccount: did, createdBy: did, uses: 1, count, disabled: invitesDisabled })
}

/**
 * Returns the codes of an account that still admit someone, including those that it has just earned. Returns none if
 * the account is not active, or if the server requires no invites.
 */
export const usableInvitesOf = async (ctx: Context, account: Account): Promise<InviteCode[]> =>
  ctx.config.inviteCodeRequired && activityOf(account).active
    ? ctx.db.transaction(async (tx) => {
        await makeEarnedCodes(ctx, tx, account)
        return (await listCodesOf(tx, account.did)).filter(isOpen)
      })
    : []

export const isUsedUp = ({ uses, available }: InviteCode): boolean => uses.length >= available

const isOpen = (code: InviteCode): boolean => !code.disabled && !isUsedUp(code)

/**
 * Returns a code as com.atproto.server.defs#inviteCode. Uses by pending accounts, which have no DID yet, are left out.
 */
export const codeView = ({ createdAt, uses, ...code }: InviteCode) => ({
  ...code,
  createdAt: wireTime(createdAt),
  uses: uses.flatMap(({ usedBy, usedAt }) => {
    const did = parseDid(usedBy)
    return did === null ? [] : [{ usedBy: did, usedAt: wireTime(usedAt) }]
  }),
})

/** Returns the codes that an account earned or was given, in the form of the lexicon. */
export const codeViewsOf = async (reader: Reader, did: Did) => (await listCodesOf(reader, did)).map(codeView)
