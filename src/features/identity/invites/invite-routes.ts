/**
 * Endpoints for invite codes: com.atproto.server for account holders, com.atproto.admin for operators and moderators.
 */
import { procedure, query } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { byPair } from '../../../http/paged-list.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { accountOf, allowInvites } from '../accounts/accounts.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { admin, fullAccess, moderator } from '../../access/auth/auth.ts'
import { recordAudit } from '../../operations/operators/operators.ts'
import { disableCodes, listCodePage, listCodesOf, type CodePlace, type CodeSort } from './invite-store.ts'
import { codeView, isUsedUp, makeCodes, makeEarnedCodes, OPERATOR } from './invites.ts'

/** Maximum number of codes per request, or of codes and accounts together if a request names both. */
const MAX_CODES = 1000

const isSort = (text: string): text is CodeSort => text === 'recent' || text === 'usage'
const codeCursor = byPair<CodePlace>('value', '::', 'code')

function requireSensible(uses: number, count: number): void {
  if (uses < 1 || count < 1 || count > MAX_CODES)
    throw invalidRequest(`A request may create 1 to ${MAX_CODES} codes, each for at least one use`)
}

export const inviteRoutes = [
  procedure('com.atproto.server.createInviteCode', {
    auth: admin,
    async handler(call) {
      const { ctx, caller, input } = call
      const { useCount, forAccount = OPERATOR } = input
      requireSensible(useCount, 1)
      const [code] = await ctx.db.transaction(async (tx) => {
        await recordAudit(call, tx, {
          actor: caller.actor,
          action: 'claim_codes_minted',
          subject: forAccount,
          detail: '1',
        })
        return makeCodes(ctx, tx, { forAccount, createdBy: OPERATOR, uses: useCount, count: 1 })
      })
      return { code: code! }
    },
  }),
  procedure('com.atproto.server.createInviteCodes', {
    auth: admin,
    async handler(call) {
      const { ctx, caller, input } = call
      const { codeCount, useCount, forAccounts = [] } = input
      const owners = forAccounts.length > 0 ? forAccounts : [OPERATOR]
      requireSensible(useCount, codeCount * owners.length)
      const codes = await ctx.db.transaction(async (tx) => {
        const made: { account: string; codes: string[] }[] = []
        for (const account of owners) {
          await recordAudit(call, tx, {
            actor: caller.actor,
            action: 'claim_codes_minted',
            subject: account,
            detail: String(codeCount),
          })
          made.push({
            account,
            codes: await makeCodes(ctx, tx, {
              forAccount: account,
              createdBy: OPERATOR,
              uses: useCount,
              count: codeCount,
            }),
          })
        }
        return made
      })
      return { codes }
    },
  }),
  query('com.atproto.server.getAccountInviteCodes', {
    auth: fullAccess({ refusesTakendown: true }),
    async handler({ ctx, caller: { did }, params: { includeUsed, createAvailable } }) {
      const codes = await ctx.db.transaction(async (tx) => {
        const account = await accountOf(tx, did)
        if (!account || statusOf(account) !== 'active') throw new Refusal(400, 'NotFound', 'Account not found')
        if (createAvailable) await makeEarnedCodes(ctx, tx, account)
        return listCodesOf(tx, did)
      })
      return { codes: codes.filter((code) => !code.disabled && (includeUsed || !isUsedUp(code))).map(codeView) }
    },
  }),
  query('com.atproto.admin.getInviteCodes', {
    auth: moderator,
    async handler({ ctx, params: { sort, limit, cursor } }) {
      if (!isSort(sort)) throw invalidRequest(`unknown sort method: ${sort}`)
      const after = cursor === undefined ? null : codeCursor.read(cursor)
      const { codes, end } = await listCodePage(ctx.db, sort, after, limit)
      return { codes: codes.map(codeView), ...(end && { cursor: codeCursor.write(end) }) }
    },
  }),
  procedure('com.atproto.admin.disableInviteCodes', {
    auth: moderator,
    async handler(call) {
      const { ctx, caller, input } = call
      const { codes = [], accounts = [] } = input
      if (accounts.includes(OPERATOR)) throw invalidRequest('cannot disable admin invite codes')
      if (codes.length + accounts.length > MAX_CODES)
        throw invalidRequest(`A request may name at most ${MAX_CODES} codes and accounts`)
      if (!accounts.every((account) => parseDid(account))) throw invalidRequest('accounts must be DIDs')
      const act = { actor: caller.actor, action: 'invites_disabled' } as const
      await ctx.db.transaction(async (tx) => {
        for (const [owner, count] of await disableCodes(tx, { codes, accounts }))
          await recordAudit(call, tx, {
            ...act,
            subject: owner ?? undefined,
            detail: count === 1 ? '1 code' : `${count} codes`,
          })
      })
    },
  }),
  procedure('com.atproto.admin.disableAccountInvites', {
    auth: moderator,
    async handler(call) {
      const { ctx, caller, input } = call
      const { account } = input
      await ctx.db.transaction(async (tx) => {
        await allowInvites(tx, account, false)
        await recordAudit(call, tx, { actor: caller.actor, action: 'invites_disabled', subject: account })
      })
    },
  }),
  procedure('com.atproto.admin.enableAccountInvites', {
    auth: moderator,
    async handler(call) {
      const { ctx, caller, input } = call
      const { account } = input
      await ctx.db.transaction(async (tx) => {
        await allowInvites(tx, account, true)
        await recordAudit(call, tx, { actor: caller.actor, action: 'invites_enabled', subject: account })
      })
    },
  }),
]
