/** The list of cases, and the page of one. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { readableDecision, type ExportedDecision, type ListedCase, type WholeCase } from '../cases/cases.ts'
import { accountLink } from './console-accounts.ts'
import {
  actForm,
  actorName,
  bodyOf,
  factList,
  framed,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  pieceOf,
  refusalNote,
  refusedPage,
  wordFor,
} from './console-layout.ts'
import { caseRoomTexts as texts } from './case-texts.ts'
import { consoleTexts } from './console-texts.ts'
import { casePath } from './console-case-acts.ts'
import { ask, type Desk } from './console-session.ts'

const ROWS = 25
/** Reports, and notes, on the page of a case. Each may have two thousand characters. */
const CASE_ROWS = 10
const states = ['waiting', 'open', 'appealed', 'decided', 'closed', 'all'] as const

const stateWords = {
  waiting: texts.waiting,
  open: texts.open,
  appealed: texts.appealed,
  decided: texts.decided,
  closed: texts.closed,
  all: texts.all,
} as const
const endWords = { release: texts.atEndRelease, takedown: texts.atEndTakedown } as const
const outcomes = { upheld: texts.upheld, reversed: texts.reversed } as const
const decisions = {
  nothing: texts.nothing,
  warn: texts.warn,
  takedown: texts.takedown,
  'takedown-account': texts['takedown-account'],
  quarantine: texts.quarantineAct,
} as const
/** Where a report came from. */
const sources = {
  report: texts.report,
  label: texts.label,
  notice: texts.notice,
  check: texts.check,
  operator: texts.operator,
} as const

const caseUrl = (id: number): string => `/admin/case?id=${id}`

const textArea = (name: string, label: Wording): Html => html`
<div class="field"><label for="${name}">${label}</label><textarea id="${name}" name="${name}" rows="4" maxlength="2000" required></textarea></div>`

const choice = (
  name: string,
  label: Wording,
  {
    values,
    words,
    chosen = '',
  }: { values: readonly string[]; words: Readonly<Record<string, Wording>>; chosen?: string },
): Html => html`
<div class="field">
  <label for="${name}">${label}</label>
  <select id="${name}" name="${name}">${values.map((value) => html`<option value="${value}"${value === chosen && html` selected`}>${wordFor(words, value)}</option>`)}</select>
</div>`

interface Listed {
  cases: ListedCase[]
  waiting: number
  overdue: number
  cursor?: string
}

export async function casesPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const state = searchParams.get('state') ?? 'waiting'
  const query = new URLSearchParams({ limit: String(ROWS), state, cursor: searchParams.get('cursor') ?? '' })
  const did = searchParams.get('did') ?? ''
  if (did !== '') query.set('did', did)
  const answer = await ask(desk, `/v1/admin/cases?${query}`)
  const { cases, waiting, overdue, cursor } = bodyOf<Listed>(answer, { cases: [], waiting: 0, overdue: 0 })
  return framed(desk, {
    title: consoleTexts.cases,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${texts.waitingCases({ count: waiting, overdue })}</p>
  <form method="get" action="/admin/cases" class="stack">
    ${choice('state', texts.state, { values: states, words: stateWords, chosen: state })}
    ${field({ name: 'did', label: texts.accountDid, value: did, maxLength: 253 })}
    <div><button>${consoleTexts.show}</button></div>
  </form>
  ${listOf(
    cases.map(({ id, handle, did: about, kind, subject, state: is, openedAt, deadlineAt }) =>
      noteRow(html`<a href="${caseUrl(id)}">${texts.caseOf({ id: String(id), account: handle ?? about })}</a>`, [
        html`${texts[kind]} <code>${subject}</code>`,
        texts.dates({ state: wordFor(stateWords, is), opened: minuteOf(openedAt), deadline: minuteOf(deadlineAt) }),
      ]),
    ),
    texts.none,
  )}
  ${moreLink(desk, cursor)}
</section>
${await quarantinePart(desk)}
<section class="card">
  <h2>${texts.openCase}</h2>
  ${actForm(desk, {
    id: 'case-open',
    act: 'case-open',
    back: '/admin/cases',
    button: texts.openCase,
    asksReason: false,
    inputs: html`${field({ name: 'subject', label: texts.subjectToOpen, required: true, maxLength: 1000 })}${textArea('why', texts.why)}`,
  })}
</section>`,
  })
}

interface Quarantined {
  blobs: { did: string; handle: string | null; cid: string; endsAt: string; atEnd: string }[]
}

const blobUrl = (did: string, cid: string): string => `/admin/data/blob?${new URLSearchParams({ did, cid }).toString()}`

/** Blobs in quarantine, those that end first at the top. */
async function quarantinePart(desk: Desk): Promise<Html> {
  const answer = await ask(desk, `/v1/admin/blobs/quarantine?limit=${ROWS}`)
  const { blobs } = bodyOf<Quarantined>(answer, { blobs: [] })
  return html`
<section class="card">
  <h2>${texts.inQuarantine}</h2>
  ${refusalNote(answer)}
  ${listOf(
    blobs.map(({ did, handle, cid, endsAt, atEnd }, i) =>
      noteRow(
        html`<a href="${blobUrl(did, cid)}">${cid}</a>`,
        [
          texts.ofAccount({ account: accountLink({ did, handle }) }),
          (atEnd === 'release' ? texts.untilRelease : texts.untilTakedown)({ time: minuteOf(endsAt) }),
        ],
        actForm(desk, {
          id: `release-${i}`,
          act: 'blob-release',
          back: '/admin/cases',
          button: texts.release,
          fields: { did, cid },
        }),
      ),
    ),
    texts.noQuarantine,
  )}
  ${actForm(desk, {
    id: 'blob-quarantine',
    act: 'blob-quarantine',
    back: '/admin/cases',
    button: texts.quarantine,
    inputs: html`${field({ id: 'aside-did', name: 'did', label: texts.accountDid, required: true, maxLength: 253 })}${field({ name: 'cid', label: texts.blobCid, required: true, maxLength: 200 })}${field({ name: 'days', label: texts.days, value: '30', required: true, maxLength: 3 })}${choice('end', texts.afterwards, { values: ['release', 'takedown'], words: endWords })}`,
  })}
</section>`
}

const caseAsked = ({ call }: Desk): string => casePath(call.url.searchParams.get('id') ?? '')

/** The export of a decision, as a file of text or JSON. */
export async function caseExport(desk: Desk): Promise<Response> {
  const answer = await ask(desk, `${caseAsked(desk)}/export`)
  if (!answer.ok) return refusedPage(desk, texts.case, answer)
  const exported = answer.body as ExportedDecision
  const isText = desk.call.url.searchParams.get('format') === 'text'
  return new Response(isText ? readableDecision(exported) : JSON.stringify(exported, null, 2), {
    headers: {
      'Content-Type': isText ? 'text/plain; charset=utf-8' : 'application/json',
      'Content-Disposition': `attachment; filename="case-${exported.id}.${isText ? 'txt' : 'json'}"`,
      'Cache-Control': 'no-store',
    },
  })
}

export async function casePage(desk: Desk): Promise<Response> {
  const answer = await ask(desk, caseAsked(desk))
  if (!answer.ok) return refusedPage(desk, texts.case, answer)
  const found = answer.body as WholeCase
  const { decision, furtherReports } = found
  const reports = pieceOf(desk, found.reports, CASE_ROWS, 'reports')
  const notes = pieceOf(desk, found.notes, CASE_ROWS, 'notes')
  return framed(desk, {
    title: texts.caseNumber({ id: String(found.id) }),
    body: html`
<section class="card">
  ${factList([
    [texts.accountName, accountLink(found)],
    [texts.subject, html`${texts[found.kind]} <code>${found.subject}</code>`],
    [
      texts.blobName,
      found.kind === 'blob'
        ? texts.openBlob({
            blob: (words) => html`<a href="${blobUrl(found.did, found.subject.split('#')[1] ?? '')}">${words}</a>`,
          })
        : null,
    ],
    [texts.state, wordFor(stateWords, found.state)],
    [texts.opened, minuteOf(found.openedAt)],
    [texts.decideBy, minuteOf(found.deadlineAt)],
    [texts.furtherReports, furtherReports === 0 ? null : furtherReports],
  ])}
  <p class="links"><a href="/admin/cases?${new URLSearchParams({ state: 'all', did: found.did }).toString()}">${texts.allOfAccount}</a></p>
</section>
${decision && decisionPart(found.id, decision)}
<section class="card">
  <h2>${texts.reports}</h2>
  ${listOf(
    reports.shown.map(({ source, by, reason, text, at }) =>
      noteRow(
        reason === '' ? wordFor(sources, source) : texts.sourceReason({ source: wordFor(sources, source), reason }),
        [text, consoleTexts.by({ actor: by === '' ? texts.deletedAccount : actorName(by), time: minuteOf(at) })],
      ),
    ),
    texts.noReports,
  )}
  ${reports.more}
</section>
<section class="card">
  <h2>${texts.notes}</h2>
  ${listOf(
    notes.shown.map(({ actor, text, at }) =>
      noteRow(text, [consoleTexts.by({ actor: actorName(actor), time: minuteOf(at) })]),
    ),
    texts.noNotes,
  )}
  ${notes.more}
</section>
${actsPart(desk, found)}`,
  })
}

const exportUrl = (id: number, format: string): string => `/admin/case/export?id=${id}&format=${format}`

const decisionPart = (id: number, { appeal, ...decision }: NonNullable<WholeCase['decision']>): Html => html`
<section class="card">
  <h2>${texts.decision}</h2>
  ${factList([
    [texts.decision, wordFor(decisions, decision.act)],
    [texts.reason, decision.reason],
    [texts.by, texts.byAt({ actor: actorName(decision.decidedBy), time: minuteOf(decision.decidedAt) })],
    [texts.person, decision.mailed ? texts.mailed : texts.notMailed],
    [texts.appealUntil, decision.appealUntil && minuteOf(decision.appealUntil)],
    [texts.appeal, appeal && html`${appeal.text} <small>${minuteOf(appeal.at)}</small>`],
    [
      texts.answer,
      appeal?.outcome
        ? texts.answered({
            outcome: wordFor(outcomes, appeal.outcome),
            text: appeal.answer ?? '',
            actor: actorName(decision.answeredBy ?? ''),
          })
        : null,
    ],
  ])}
  <p class="links"><a href="${exportUrl(id, 'text')}">${texts.exportText}</a> <a href="${exportUrl(id, 'json')}">${texts.exportJson}</a></p>
  <p class="quiet">${texts.exportAbout}</p>
</section>`

/** The acts that are possible now. The endpoints check again. */
function actsPart(desk: Desk, { id, state, acts }: WholeCase): Html {
  const form = (act: string, button: Wording, inputs: Html, { isDangerous = false, asksReason = false } = {}): Html =>
    actForm(desk, {
      id: act,
      act,
      back: caseUrl(id),
      button,
      inputs,
      isDangerous,
      fields: { id: String(id) },
      asksReason,
    })
  const why = textArea('why', texts.whyMailed)
  return html`
<section class="card">
  <h2>${texts.act}</h2>
  ${state === 'open' && form('case-decide', texts.decide, html`${choice('decision', texts.decision, { values: acts, words: decisions })}${why}`, { isDangerous: true })}
  ${state === 'appealed' && form('case-answer', texts.answerAppeal, html`${choice('outcome', texts.outcome, { values: ['upheld', 'reversed'], words: outcomes })}${why}`, { isDangerous: true })}
  ${form('case-note', texts.addNote, textArea('note', texts.note))}
  ${['open', 'appealed'].includes(state) && form('case-deadline', texts.moveDeadline, field({ name: 'days', label: texts.daysFromNow, required: true, maxLength: 3 }), { asksReason: true })}
</section>`
}
