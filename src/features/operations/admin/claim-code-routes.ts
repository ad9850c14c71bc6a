/** Claim codes: invite codes that expire and can be used once. */
import { Type } from '@sinclair/typebox'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import { claimCodeRedeemed, invalidClaim, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { wireTime, wireTimeOrNull, type Millis } from '../../../protocol/identifiers.ts'
import {
  findClaimCode,
  insertClaimCodes,
  listClaimCodes,
  revokeClaimCode,
  withNewClaimCodes,
  type ClaimCode,
} from '../../identity/invites/invites.ts'
import { actorOf, operator, recordAudit } from '../operators/operators.ts'

const MAX_BATCH = 10
const DEFAULT_HOURS = 24
/** A hundred years. The limit keeps the expiry time within what RFC 3339 can express. */
const MAX_HOURS = 24 * 36_525

const codePages: Pages<Pick<ClaimCode, 'createdAt' | 'code'>> = {
  cursor: byPair('createdAt', '|', 'code'),
  maxRows: 200,
  isStrict: true,
}

/** A code that was redeemed or revoked keeps that status after it expires. */
function statusOf(
  { isRedeemed, isRevoked, expiresAt }: ClaimCode,
  now: Millis,
): 'redeemed' | 'revoked' | 'expired' | 'pending' {
  if (isRedeemed) return 'redeemed'
  if (isRevoked) return 'revoked'
  return expiresAt <= now ? 'expired' : 'pending'
}

export const claimCodeRoutes = [
  route('POST', '/v1/accounts/claim-codes', {
    auth: operator('invite'),
    async handler(call) {
      const { ctx, caller, body } = call
      const {
        count,
        expiresInHours = DEFAULT_HOURS,
        domain = null,
      } = await readJson(
        body,
        Type.Object({
          count: Type.Integer(),
          expiresInHours: Type.Optional(Type.Integer()),
          domain: Type.Optional(Type.String()),
        }),
      )
      if (count < 1 || count > MAX_BATCH) throw invalidClaim(`count must be from 1 to ${MAX_BATCH}`)
      if (expiresInHours < 1 || expiresInHours > MAX_HOURS)
        throw invalidClaim(`expiresInHours must be from 1 to ${MAX_HOURS}`)
      const { availableUserDomains } = ctx.config
      if (domain !== null && !availableUserDomains.includes(domain))
        throw invalidClaim(`domain must be one of ${availableUserDomains.join(', ')}`)
      const now = ctx.clock.now()
      return withNewClaimCodes(count, async (codes) => {
        await ctx.db.transaction(async (tx) => {
          await insertClaimCodes(tx, codes, {
            createdBy: actorOf(caller),
            domain,
            now,
            expiresAt: now + expiresInHours * HOUR_MILLIS,
          })
          await recordAudit(call, tx, {
            actor: actorOf(caller),
            action: 'claim_codes_minted',
            detail: JSON.stringify({ count, expiresInHours, ...(domain !== null && { domain }) }),
          })
        })
        return { codes }
      })
    },
  }),

  route('GET', '/v1/accounts/claim-codes', {
    auth: operator('invite'),
    async handler({ ctx, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, codePages, (after, limit) =>
        listClaimCodes(ctx.db, after, limit),
      )
      return {
        codes: rows.map((row) => ({
          code: row.code,
          status: statusOf(row, ctx.clock.now()),
          domain: row.domain ?? undefined,
          createdAt: wireTime(row.createdAt),
          expiresAt: wireTime(row.expiresAt),
          redeemedAt: wireTimeOrNull(row.redeemedAt) ?? undefined,
          revokedAt: wireTimeOrNull(row.revokedAt) ?? undefined,
        })),
        cursor,
      }
    },
  }),

  // The code is sent in the body, because paths end up in logs.
  route('POST', '/v1/accounts/claim-codes/revoke', {
    auth: operator('invite'),
    async handler(call) {
      const { ctx, caller, body } = call
      const { code } = await readJson(body, Type.Object({ code: Type.String() }))
      const now = ctx.clock.now()
      await ctx.db.transaction(async (tx) => {
        const found = await findClaimCode(tx, code)
        if (found === null) throw notFound('No such code')
        if (found.isRedeemed) throw claimCodeRedeemed()
        if (await revokeClaimCode(tx, code, now))
          await recordAudit(call, tx, { actor: actorOf(caller), action: 'claim_code_revoked' })
      })
      return { code, status: 'revoked' }
    },
  }),
]
