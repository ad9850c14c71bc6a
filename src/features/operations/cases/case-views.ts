/** Cases as endpoints return them, and the export of a decision. */
import { inEnglish } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import type { OwnDecision } from './case-appeals.ts'
import { actsFor, decisionActs, openAppealUntil } from './case-decisions.ts'
import { findDecision, listNotes, listReports, type CaseRow, type DecisionRow } from './case-store.ts'
import { subjectText } from './case-subjects.ts'

/** More rows than a case can have: its reports and notes are bounded. */
const ALL_ROWS = 1000

export const caseView = (row: CaseRow) => ({
  id: row.seq,
  did: row.did,
  handle: row.handle,
  kind: row.kind,
  subject: subjectText(row),
  state: row.state,
  openedAt: wireTime(row.openedAt),
  changedAt: wireTime(row.changedAt),
  deadlineAt: wireTime(row.deadlineAt),
})

export type ListedCase = ReturnType<typeof caseView>

const decisionView = (ctx: Context, decision: DecisionRow) => ({
  act: decision.act,
  reason: decision.reason,
  decidedAt: wireTime(decision.decidedAt),
  actUntil: wireTimeOrNull(decision.actUntil),
  appealUntil: wireTimeOrNull(openAppealUntil(ctx, decision)),
  appeal:
    decision.appealedAt === null
      ? null
      : {
          text: decision.appeal ?? '',
          at: wireTime(decision.appealedAt),
          outcome: decision.outcome,
          answer: decision.answer,
          answeredAt: wireTimeOrNull(decision.answeredAt),
        },
})

/** Everything about a case, for moderators. */
export async function wholeCase(ctx: Context, row: CaseRow) {
  const { db } = ctx
  const [decision, reports, notes] = [
    await findDecision(db, row.seq),
    await listReports(db, row.seq, ALL_ROWS),
    await listNotes(db, row.seq, ALL_ROWS),
  ]
  return {
    ...caseView(row),
    acts: row.state === 'open' ? actsFor(row.kind) : [],
    reports: reports.map(({ seq, at, ...said }) => ({ id: seq, ...said, at: wireTime(at) })),
    furtherReports: row.furtherReports,
    notes: notes.map(({ seq, actor, text, writtenAt }) => ({ id: seq, actor, text, at: wireTime(writtenAt) })),
    decision: decision && {
      ...decisionView(ctx, decision),
      decidedBy: decision.decidedBy,
      answeredBy: decision.answeredBy,
      mailed: decision.mailed === 1,
    },
  }
}

export type WholeCase = Awaited<ReturnType<typeof wholeCase>>

/** A decision, for the person whom it is about. It does not say who reported, or who decided. */
export const ownDecisionView = (ctx: Context, { found, decision, mayAppeal }: OwnDecision) => ({
  case: found.seq,
  handle: found.handle,
  subject: subjectText(found),
  done: inEnglish(decisionActs[decision.act]?.told ?? ''),
  ...decisionView(ctx, decision),
  mayAppeal,
})

/**
 * The export of a decision: who decided, why, and on which reports, without the reporters. Null if the case has not
 * been decided.
 */
export async function exportedDecision(ctx: Context, reader: Reader, row: CaseRow) {
  const decision = await findDecision(reader, row.seq)
  if (decision === null) return null
  const grounds = new Map<string, { source: string; reason: string; reports: number }>()
  for (const { source, reason } of await listReports(reader, row.seq, ALL_ROWS)) {
    const key = `${source} ${reason}`
    const ground = grounds.get(key)
    grounds.set(key, { source, reason, reports: (ground?.reports ?? 0) + 1 })
  }
  const { config, clock } = ctx
  return {
    service: config.publicUrl,
    serviceDid: config.serverDid,
    exportedAt: wireTime(clock.now()),
    ...caseView(row),
    grounds: [...grounds.values()],
    furtherReports: row.furtherReports,
    decision: { ...decisionView(ctx, decision), decidedBy: decision.decidedBy, answeredBy: decision.answeredBy },
  }
}

export type ExportedDecision = NonNullable<Awaited<ReturnType<typeof exportedDecision>>>

/** The export as readable text. Text by strangers is indented, so that it cannot pose as a heading. */
export function readableDecision(given: ExportedDecision): string {
  const { decision, grounds } = given
  const { appeal } = decision
  const said = (text: string) => text.replace(/^/gm, '    ')
  return [
    `Decision on case ${given.id} of ${given.service}`,
    `Subject: ${given.subject}`,
    given.handle !== null && `Account: ${given.handle} (${given.did})`,
    `Opened: ${given.openedAt}`,
    `Grounds: ${grounds.map(({ source, reason, reports }) => `${reports} × ${source}${reason === '' ? '' : ` (${reason})`}`).join(', ')}`,
    `Decision: ${decision.act}, ${decision.decidedAt}, by ${decision.decidedBy}`,
    `Reason:\n${said(decision.reason)}`,
    appeal && `Appeal, ${appeal.at}:\n${said(appeal.text)}`,
    appeal?.outcome != null &&
      `Answer, ${appeal.answeredAt}, by ${decision.answeredBy}: ${appeal.outcome}\n${said(appeal.answer ?? '')}`,
  ]
    .filter(Boolean)
    .join('\n')
    .concat('\n')
}
