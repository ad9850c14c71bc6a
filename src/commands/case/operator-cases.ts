/** Shared by the commands for cases. */
import { Misuse } from '../command.ts'
import { facts, inOneLine, minute, table } from '../report.ts'

const PATH = '/v1/admin/cases'

export interface ListedCase {
  id: number
  did: string
  handle: string | null
  subject: string
  state: string
  openedAt: string
  deadlineAt: string
}

export interface WholeCase extends ListedCase {
  acts: string[]
  reports: { source: string; by: string; reason: string; text: string; at: string }[]
  furtherReports: number
  notes: { actor: string; text: string; at: string }[]
  decision: {
    act: string
    reason: string
    decidedBy: string
    decidedAt: string
    mailed: boolean
    appeal: { text: string; at: string; outcome: string | null; answer: string | null } | null
  } | null
}

/** Returns the path of a case or of a part of it. Throws `Misuse` unless `id` is the number of a case. */
export function casePath(id: string, rest = ''): string {
  if (!/^\d{1,15}$/.test(id)) throw new Misuse('name the case by its number')
  return `${PATH}/${id}${rest}`
}

/** Returns a case as text. Each text by a stranger takes one line. */
export function caseText({ id, subject, handle, state, openedAt, deadlineAt, ...found }: WholeCase): string {
  const { decision, reports, furtherReports, notes, acts } = found
  const appeal = decision?.appeal
  const told = facts({
    case: id,
    subject,
    account: handle,
    state,
    opened: minute(openedAt),
    deadline: minute(deadlineAt),
    'possible acts': acts.length === 0 ? null : acts.join(', '),
    'further reports': furtherReports === 0 ? null : furtherReports,
    decision: decision && `${decision.act}, ${minute(decision.decidedAt)}, by ${decision.decidedBy}`,
    reason: decision && inOneLine(decision.reason),
    mailed: decision && (decision.mailed ? 'yes' : 'no'),
    appeal: appeal && inOneLine(appeal.text),
    answer: appeal?.outcome && `${appeal.outcome}: ${inOneLine(appeal.answer ?? '')}`,
  })
  const said = table(
    ['TIME', 'SOURCE', 'BY', 'REASON', 'TEXT'],
    reports.map(({ at, source, by, reason, text }) => [minute(at)!, source, by, reason, text]),
  )
  const noted = notes.map(({ at, actor, text }) => `${minute(at)}  ${actor}: ${inOneLine(text)}`).join('\n')
  return [told, said, noted].filter((part) => part !== '').join('\n\n')
}
