/** Endpoints of cases: for operators, and for the account holder whom a decision is about. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { bySeq, pageOf, type Pages } from '../../../http/paged-list.ts'
import { DAY_SECS } from '../../../base/durations.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { operator } from '../operators/operators.ts'
import { appeal, decisionOfCode } from './case-appeals.ts'
import { addNote, answerAppeal, decide, existingCase, openCase, postpone } from './case-decisions.ts'
import { caseStates, countWaiting, listCases, type CaseState } from './case-store.ts'
import { MAX_QUARANTINE_SECS } from './quarantine-routes.ts'
import { caseView, exportedDecision, ownDecisionView, readableDecision, wholeCase } from './case-views.ts'

const MAX_DEADLINE_SECS = 365 * DAY_SECS
const casePages: Pages<{ seq: number }> = { cursor: bySeq, maxRows: 100 }
const text = Type.String({ maxLength: 20_000 })

const waiting: readonly CaseState[] = ['open', 'appealed']

/** `waiting`, `all`, or one state. */
function statesOf(given: string): readonly CaseState[] {
  if (given === '' || given === 'waiting') return waiting
  if (given === 'all') return caseStates
  const state = caseStates.find((one) => one === given)
  if (state === undefined) throw invalidRequest(`state must be waiting, all, ${caseStates.join(', ')}`)
  return [state]
}

/** Throws NotFound unless it is the number of a case. */
function numberIn(path: Readonly<Record<string, string>>): number {
  const given = path['id'] ?? ''
  if (!/^\d{1,15}$/.test(given)) throw notFound('No such case')
  return Number(given)
}

export const caseRoutes = [
  route('GET', '/v1/admin/cases', {
    auth: operator('moderate'),
    async handler({ ctx, url: { searchParams } }) {
      const states = statesOf(searchParams.get('state') ?? '')
      const given = searchParams.get('did') ?? ''
      const did = parseDid(given)
      if (did === null && given !== '') throw invalidRequest('did must be a DID')
      const { rows, cursor } = await pageOf(searchParams, casePages, (before, limit) =>
        listCases(ctx.db, { states, did, beforeSeq: before?.seq ?? null }, limit),
      )
      return { cases: rows.map(caseView), ...(await countWaiting(ctx.db, ctx.clock.now())), cursor }
    },
  }),

  route('POST', '/v1/admin/cases', {
    auth: operator('moderate'),
    async handler(call) {
      const { subject, reason } = await readJson(call.body, Type.Object({ subject: text, reason: text }))
      return caseView(await openCase(call, subject, reason))
    },
  }),

  route('GET', '/v1/admin/cases/:id', {
    auth: operator('moderate'),
    handler: async ({ ctx, path }) => wholeCase(ctx, await existingCase(ctx.db, numberIn(path))),
  }),

  route('POST', '/v1/admin/cases/:id/notes', {
    auth: operator('moderate'),
    async handler(call) {
      const id = numberIn(call.path)
      const { text: note } = await readJson(call.body, Type.Object({ text }))
      await addNote(call, id, note)
      return { id }
    },
  }),

  /** `inSecs`: counted from now. */
  route('POST', '/v1/admin/cases/:id/deadline', {
    auth: operator('moderate'),
    async handler(call) {
      const id = numberIn(call.path)
      const { inSecs } = await readJson(
        call.body,
        Type.Object({ inSecs: Type.Integer({ minimum: 0, maximum: MAX_DEADLINE_SECS }) }),
      )
      await postpone(call, id, call.ctx.clock.now() + inSecs * 1000)
      return { id }
    },
  }),

  route('POST', '/v1/admin/cases/:id/decision', {
    auth: operator('moderate'),
    async handler(call) {
      const id = numberIn(call.path)
      const secs = Type.Optional(Type.Integer({ minimum: 60, maximum: MAX_QUARANTINE_SECS }))
      const wish = await readJson(call.body, Type.Object({ act: Type.String(), reason: text, secs }))
      await decide(call, id, wish)
      return wholeCase(call.ctx, await existingCase(call.ctx.db, id))
    },
  }),

  route('POST', '/v1/admin/cases/:id/answer', {
    auth: operator('moderate'),
    async handler(call) {
      const id = numberIn(call.path)
      const outcome = Type.Union([Type.Literal('upheld'), Type.Literal('reversed')])
      const answer = await readJson(call.body, Type.Object({ outcome, reason: text }))
      await answerAppeal(call, id, answer)
      return wholeCase(call.ctx, await existingCase(call.ctx.db, id))
    },
  }),

  /** The decision, as JSON or, with `format=text`, as text. */
  route('GET', '/v1/admin/cases/:id/export', {
    auth: operator('moderate'),
    async handler({ ctx, path, url: { searchParams } }) {
      const exported = await exportedDecision(ctx, ctx.db, await existingCase(ctx.db, numberIn(path)))
      if (exported === null) throw invalidRequest('The case has not been decided')
      if (searchParams.get('format') !== 'text') return exported
      return new Response(readableDecision(exported), { headers: { 'Content-Type': 'text/plain; charset=utf-8' } })
    },
  }),

  // The code is sent in the body, because paths end up in logs.
  route('POST', '/v1/decisions/view', {
    limit: 'appeal',
    async handler({ ctx, body }) {
      const { code } = await readJson(body, Type.Object({ code: Type.String() }))
      return ownDecisionView(ctx, await decisionOfCode(ctx, ctx.db, code))
    },
  }),

  route('POST', '/v1/decisions/appeal', {
    limit: 'appeal',
    async handler(call) {
      const { code, text: given } = await readJson(call.body, Type.Object({ code: Type.String(), text }))
      return ownDecisionView(call.ctx, await appeal(call, code, given))
    },
  }),
]
