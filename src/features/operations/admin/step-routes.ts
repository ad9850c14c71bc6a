/** Durable steps for operators: list pending and failed steps, with the last error; retry or drop them. */
import { Type } from '@sinclair/typebox'
import { route, type RouteCall } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { pageOf, type Pages } from '../../../http/paged-list.ts'
import type { RequestBody } from '../../../http/body.ts'
import type { Tx } from '../../../platform/database/database.ts'
import {
  dropSteps,
  listSteps,
  makeStepsDue,
  type StepChoice,
  type StepRow,
  type StepSummary,
} from '../../../platform/running/step-store.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { actorOf, operator, recordAudit, type AuditAction, type Operator } from '../operators/operators.ts'

const stepPages: Pages<Pick<StepRow, 'id'>> = {
  cursor: { write: ({ id }) => id, read: (id) => ({ id }) },
  maxRows: 100,
}

const summaryView = ({ oldestAt, nextAt, ...counts }: StepSummary) => ({
  ...counts,
  oldestAt: wireTimeOrNull(oldestAt),
  nextAt: wireTimeOrNull(nextAt),
})

/** Leaves out the payload, because it may contain a code. */
const stepView = ({ createdAt, dueAt, triedAt, ...step }: Omit<StepRow, 'payload'>) => ({
  ...step,
  status: dueAt === null ? 'failed' : 'waiting',
  createdAt: wireTime(createdAt),
  dueAt: wireTimeOrNull(dueAt),
  triedAt: wireTimeOrNull(triedAt),
})

const choiceSchema = Type.Object({ id: Type.Optional(Type.String()), kind: Type.Optional(Type.String()) })

/**
 * Read the choice from the body: one step by `id`, or all steps of a `kind`. Throws InvalidRequest unless exactly one
 * is given.
 */
async function choiceIn(body: RequestBody): Promise<StepChoice> {
  const { id, kind } = await readJson(body, choiceSchema)
  if (id !== undefined && kind === undefined) return { id }
  if (kind !== undefined && id === undefined) return { kind }
  throw invalidRequest('either id or kind is required')
}

/**
 * Apply `work` to the chosen steps and return how many it changed. Throws NotFound if the body names one step and it
 * was not changed.
 */
async function change(
  call: RouteCall<Operator>,
  action: AuditAction,
  work: (tx: Tx, choice: StepChoice) => Promise<number>,
): Promise<number> {
  const { ctx, caller, body } = call
  const choice = await choiceIn(body)
  const count = await ctx.db.transaction(async (tx) => {
    const count = await work(tx, choice)
    if (count > 0)
      await recordAudit(call, tx, {
        actor: actorOf(caller),
        action,
        subject: 'id' in choice ? choice.id : choice.kind,
        detail: JSON.stringify({ count }),
      })
    tx.afterCommit(() => ctx.steps.wake())
    return count
  })
  if (count === 0 && 'id' in choice) throw notFound('There is no such step, or it is in progress')
  return count
}

export const stepRoutes = [
  route('GET', '/v1/admin/steps', {
    auth: operator('observe'),
    async handler({ ctx, url: { searchParams } }) {
      const kind = searchParams.get('kind') || null
      const { rows, cursor } = await pageOf(searchParams, stepPages, (after, limit) =>
        listSteps(ctx.db, { kind, after: after?.id ?? '' }, limit),
      )
      return { kinds: (await ctx.steps.summaries()).map(summaryView), steps: rows.map(stepView), cursor }
    },
  }),

  route('POST', '/v1/admin/steps/retry', {
    auth: operator(),
    async handler(call) {
      return {
        retried: await change(call, 'steps_retried', (tx, choice) => makeStepsDue(tx, choice, call.ctx.clock.now())),
      }
    },
  }),

  route('POST', '/v1/admin/steps/drop', {
    auth: operator(),
    async handler(call) {
      return { dropped: await change(call, 'steps_dropped', dropSteps) }
    },
  }),
]
