/** Claim codes: invite codes that expire and can be used once. */
import { randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { route } from '../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../http/errors.ts'
import { integerParam, readJson } from '../../http/json-input.ts'
import { isUniqueViolation } from '../../platform/database/database.ts'
import { wireTime, type Millis } from '../../protocol/identifiers.ts'
import { shortCode } from '../../protocol/short-code.ts'
import { actorOf, operator, recordAudit } from '../operators/operators.ts'
import { findClaimCode, insertClaimCodes, listClaimCodes, revokeClaimCode, type ClaimCode } from './claim-code-store.ts'

const CODE_LENGTH = 6
const MAX_BATCH = 10
const DEFAULT_HOURS = 24
/** A hundred years. The limit keeps the expiry time within what RFC 3339 can express. */
const MAX_HOURS = 24 * 36_525
/** Attempts to draw a batch in which every code is new. */
const MAX_DRAWS = 3
const MAX_PAGE = 200
const DEFAULT_PAGE = 50

/** A code that was redeemed or revoked keeps that status after it expires. */
function statusOf({ redeemedAt, revokedAt, expiresAt }: ClaimCode, now: Millis): 'redeemed' | 'revoked' | 'expired' | 'pending' {
  if (redeemedAt !== null) return 'redeemed'
  if (revokedAt !== null) return 'revoked'
  return expiresAt <= now ? 'expired' : 'pending'
}

const outOfRange = (message: string) => new Refusal(400, 'InvalidClaim', message)

function drawBatch(count: number): string[] {
  const codes = new Set<string>()
  while (codes.size < count) codes.add(shortCode(CODE_LENGTH, randomBytes))
  return [...codes]
}

function parseCursor(text: string | null): { createdAt: Millis; code: string } | null {
  if (text === null || text === '') return null
  const [createdAt = '', code = ''] = text.split('|')
  if (!/^\d{1,15}$/.test(createdAt) || code === '') throw invalidRequest('Malformed cursor')
  return { createdAt: Number(createdAt), code }
}

export const claimCodeRoutes = [
  route('POST', '/v1/accounts/claim-codes', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller, body } = call
      const { count, expiresInHours = DEFAULT_HOURS } = await readJson(
        body,
        Type.Object({ count: Type.Integer(), expiresInHours: Type.Optional(Type.Integer()) }),
      )
      if (count < 1 || count > MAX_BATCH) throw outOfRange(`count must be from 1 to ${MAX_BATCH}`)
      if (expiresInHours < 1 || expiresInHours > MAX_HOURS) throw outOfRange(`expiresInHours must be from 1 to ${MAX_HOURS}`)
      const now = ctx.clock.now()
      for (let draw = 1; ; draw++) {
        const codes = drawBatch(count)
        try {
          await ctx.db.transaction(async (tx) => {
            await insertClaimCodes(tx, codes, { createdBy: actorOf(caller), now, expiresAt: now + expiresInHours * 3_600_000 })
            await recordAudit(call, tx, {
              actor: actorOf(caller),
              action: 'claim_codes_minted',
              detail: JSON.stringify({ count, expiresInHours }),
            })
          })
          return { codes }
        } catch (error) {
          if (!isUniqueViolation(error) || draw === MAX_DRAWS) throw error
        }
      }
    },
  }),

  route('GET', '/v1/accounts/claim-codes', {
    auth: operator(),
    async handler({ ctx, url: { searchParams } }) {
      const limit = integerParam(searchParams, 'limit', DEFAULT_PAGE)
      if (limit < 1 || limit > MAX_PAGE) throw invalidRequest(`limit must be from 1 to ${MAX_PAGE}`)
      const rows = await listClaimCodes(ctx.db, parseCursor(searchParams.get('cursor')), limit)
      const last = rows.at(-1)
      return {
        codes: rows.map((row) => ({
          code: row.code,
          status: statusOf(row, ctx.clock.now()),
          createdAt: wireTime(row.createdAt),
          expiresAt: wireTime(row.expiresAt),
          redeemedAt: row.redeemedAt === null ? undefined : wireTime(row.redeemedAt),
          revokedAt: row.revokedAt === null ? undefined : wireTime(row.revokedAt),
        })),
        cursor: last && rows.length === limit ? `${last.createdAt}|${last.code}` : undefined,
      }
    },
  }),

  // The code is sent in the body, because paths end up in logs.
  route('POST', '/v1/accounts/claim-codes/revoke', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller, body } = call
      const { code } = await readJson(body, Type.Object({ code: Type.String() }))
      const now = ctx.clock.now()
      await ctx.db.transaction(async (tx) => {
        const found = await findClaimCode(tx, code)
        if (found === null) throw notFound('No such code')
        if (found.redeemedAt !== null) throw new Refusal(409, 'ClaimCodeRedeemed', 'The code has been used')
        if (await revokeClaimCode(tx, code, now)) await recordAudit(call, tx, { actor: actorOf(caller), action: 'claim_code_revoked' })
      })
      return { code, status: 'revoked' }
    },
  }),
]
