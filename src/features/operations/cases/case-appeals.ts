/** Appeals: an account holder appeals once against a decision, and an operator answers the appeal. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { plainText } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { findCase, findDecisionByCode, moveCase, setAppeal, type CaseRow, type DecisionRow } from './case-store.ts'

const MAX_APPEAL_CHARS = 4000

/**
 * Appeal against a decision. Returns the number of its case; null if there is no decision, or it is too late. A second
 * appeal changes nothing and returns null.
 */
export async function appealAgainst(
  ctx: Context,
  tx: Tx,
  decision: DecisionRow | null,
  text: string,
): Promise<number | null> {
  const now = ctx.clock.now()
  if (decision === null || now >= appealableUntil(ctx, decision)) return null
  const { caseSeq } = decision
  if (!(await setAppeal(tx, caseSeq, plainText(text, MAX_APPEAL_CHARS), now))) return null
  const deadlineAt = now + ctx.config.cases.deadlineSecs * 1000
  await moveCase(tx, caseSeq, ['decided'], { state: 'appealed', now, deadlineAt })
  return caseSeq
}

export const appealableUntil = ({ config }: Context, { decidedAt }: DecisionRow): number =>
  decidedAt + config.cases.appealSecs * 1000

/** A decision, as its account holder sees it. */
export interface OwnDecision {
  found: CaseRow
  decision: DecisionRow
  mayAppeal: boolean
}

/** Returns the decision that a mailed code belongs to. Throws `NotFound` for any other text. */
export async function decisionOfCode(ctx: Context, reader: Reader, code: string): Promise<OwnDecision> {
  const hash = opaqueTokenHash(code)
  const decision = hash === null ? null : await findDecisionByCode(reader, hash)
  const found = decision && (await findCase(reader, decision.caseSeq))
  if (decision === null || found === null) throw notFound('The code does not belong to a decision')
  const mayAppeal = decision.appealedAt === null && ctx.clock.now() < appealableUntil(ctx, decision)
  return { found, decision, mayAppeal }
}

/** Appeal with a mailed code. Throws `NotFound`, `InvalidRequest` without a text, and `AppealClosed` (409). */
export async function appeal({ ctx }: Exchange, code: string, text: string): Promise<OwnDecision> {
  if (plainText(text, MAX_APPEAL_CHARS) === '') throw invalidRequest('text must say why the decision is wrong')
  return ctx.db.transaction(async (tx) => {
    const { decision } = await decisionOfCode(ctx, tx, code)
    if ((await appealAgainst(ctx, tx, decision, text)) === null)
      throw new Refusal(
        409,
        'AppealClosed',
        'This decision has already been appealed, or the time for an appeal is over',
      )
    return decisionOfCode(ctx, tx, code)
  })
}
