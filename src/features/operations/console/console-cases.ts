/** The list of cases, and the page of one. */
import { html, type Html } from '../../../http/html.ts'
import type { InsideAnswer } from '../../../http/inside.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { readableDecision, type ExportedDecision, type ListedCase, type WholeCase } from '../cases/cases.ts'
import { accountUrl } from './console-accounts.ts'
import { actForm, factList, framed, listOf, minuteOf, moreLink, noteRow, refusalNote } from './console-layout.ts'
import { casePath } from './console-case-acts.ts'
import { ask, type Desk } from './console-session.ts'

const ROWS = 25
const states = ['waiting', 'open', 'appealed', 'decided', 'closed', 'all'] as const

export const caseUrl = (id: number): string => `/admin/case?id=${id}`

const textArea = (name: string, label: string): Html => html`
<div class="field"><label for="${name}">${label}</label><textarea id="${name}" name="${name}" rows="4" maxlength="2000" required></textarea></div>`

const choice = (name: string, label: string, values: readonly string[], chosen = ''): Html => html`
<div class="field">
  <label for="${name}">${label}</label>
  <select id="${name}" name="${name}">${values.map((value) => html`<option value="${value}"${value === chosen && html` selected`}>${value}</option>`)}</select>
</div>`

export async function casesPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const state = searchParams.get('state') ?? 'waiting'
  const query = new URLSearchParams({ limit: String(ROWS), state, cursor: searchParams.get('cursor') ?? '' })
  const did = searchParams.get('did') ?? ''
  if (did !== '') query.set('did', did)
  const answer = await ask(desk, `/v1/admin/cases?${query}`)
  const { cases, waiting, overdue, cursor } = answer.ok
    ? (answer.body as { cases: ListedCase[]; waiting: number; overdue: number; cursor?: string })
    : { cases: [], waiting: 0, overdue: 0, cursor: undefined }
  return framed(desk, {
    title: 'Cases',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${waiting} cases wait for a decision, of which ${overdue} are late.</p>
  <form method="get" action="/admin/cases" class="stack">
    ${choice('state', 'State', states, state)}
    ${field({ name: 'did', label: 'DID of the account', value: did, maxLength: 253 })}
    <div><button>Show</button></div>
  </form>
  ${listOf(
    cases.map(({ id, handle, did: about, kind, subject, state: is, openedAt, deadlineAt }) =>
      noteRow(html`<a href="${caseUrl(id)}">Case ${id}: ${handle ?? about}</a>`, [
        html`${kind} <span class="mono">${subject}</span>`,
        html`${is}, opened ${minuteOf(openedAt)}, to be decided by ${minuteOf(deadlineAt)}`,
      ]),
    ),
    'There are none.',
  )}
  ${moreLink(desk, cursor)}
</section>
${await quarantinePart(desk)}
<section class="card">
  <h2>Open a case</h2>
  ${actForm(desk, {
    id: 'case-open',
    act: 'case-open',
    back: '/admin/cases',
    button: 'Open a case',
    asksReason: false,
    inputs: html`${field({ name: 'subject', label: 'DID of the account, AT URI of the record, or DID#CID of the blob', required: true, maxLength: 1000 })}${textArea('why', 'Why')}`,
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
  const { blobs } = answer.ok ? (answer.body as Quarantined) : { blobs: [] }
  return html`
<section class="card">
  <h2>Blobs in quarantine</h2>
  ${refusalNote(answer)}
  ${listOf(
    blobs.map(({ did, handle, cid, endsAt, atEnd }, i) =>
      noteRow(
        html`<a href="${blobUrl(did, cid)}">${cid}</a>`,
        [
          html`of <a href="${accountUrl(did)}">${handle ?? did}</a>`,
          html`until ${minuteOf(endsAt)}, then ${atEnd === 'release' ? 'others can read it again' : 'it is taken down'}`,
        ],
        actForm(desk, {
          id: `release-${i}`,
          act: 'blob-release',
          back: '/admin/cases',
          button: 'Release',
          fields: { did, cid },
        }),
      ),
    ),
    'No blob is in quarantine.',
  )}
  ${actForm(desk, {
    id: 'blob-quarantine',
    act: 'blob-quarantine',
    back: '/admin/cases',
    button: 'Quarantine a blob',
    inputs: html`${field({ id: 'aside-did', name: 'did', label: 'DID of the account', required: true, maxLength: 253 })}${field({ name: 'cid', label: 'CID of the blob', required: true, maxLength: 200 })}${field({ name: 'days', label: 'Days', value: '30', required: true, maxLength: 3 })}${choice('end', 'Then', ['release', 'takedown'])}`,
  })}
</section>`
}

const notShown = (desk: Desk, answer: Exclude<InsideAnswer, { ok: true }>): Response =>
  framed(desk, {
    title: 'Case',
    status: answer.status,
    body: html`<section class="card">${refusalNote(answer)}</section>`,
  })

const caseAsked = ({ call }: Desk): string => casePath(call.url.searchParams.get('id') ?? '')

/** The export of a decision, as a file of text or JSON. */
export async function caseExport(desk: Desk): Promise<Response> {
  const answer = await ask(desk, `${caseAsked(desk)}/export`)
  if (!answer.ok) return notShown(desk, answer)
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
  if (!answer.ok) return notShown(desk, answer)
  const found = answer.body as WholeCase
  const { decision, reports, furtherReports, notes } = found
  return framed(desk, {
    title: `Case ${found.id}`,
    body: html`
<section class="card">
  ${factList({
    Account: html`<a href="${accountUrl(found.did)}">${found.handle ?? found.did}</a>`,
    Subject: html`${found.kind} <code>${found.subject}</code>`,
    Blob:
      found.kind === 'blob'
        ? html`<a href="${blobUrl(found.did, found.subject.split('#')[1] ?? '')}">Open it</a>, which the audit log notes`
        : null,
    State: found.state,
    Opened: minuteOf(found.openedAt),
    'To be decided by': minuteOf(found.deadlineAt),
    'Further reports': furtherReports === 0 ? null : furtherReports,
  })}
  <p class="links"><a href="/admin/cases?${new URLSearchParams({ state: 'all', did: found.did }).toString()}">All cases of the account</a></p>
</section>
${decision && decisionPart(found.id, decision)}
<section class="card">
  <h2>Reports</h2>
  ${listOf(
    reports.map(({ source, by, reason, text, at }) =>
      noteRow(reason === '' ? source : html`${source}: ${reason}`, [
        text,
        html`by ${by || 'a deleted account'}, ${minuteOf(at)}`,
      ]),
    ),
    'No reports.',
  )}
</section>
<section class="card">
  <h2>Notes</h2>
  ${listOf(
    notes.map(({ actor, text, at }) => noteRow(text, [html`by ${actor}, ${minuteOf(at)}`])),
    'There are no notes.',
  )}
</section>
${actsPart(desk, found)}`,
  })
}

const exportUrl = (id: number, format: string): string => `/admin/case/export?id=${id}&format=${format}`

const decisionPart = (id: number, { appeal, ...decision }: NonNullable<WholeCase['decision']>): Html => html`
<section class="card">
  <h2>Decision</h2>
  ${factList({
    Decision: decision.act,
    Reason: decision.reason,
    By: html`${decision.decidedBy}, ${minuteOf(decision.decidedAt)}`,
    'The person': decision.mailed ? 'was mailed' : 'was not mailed',
    'May appeal until': decision.appealUntil && minuteOf(decision.appealUntil),
    Appeal: appeal && html`${appeal.text}, ${minuteOf(appeal.at)}`,
    Answer: appeal?.outcome ? html`${appeal.outcome}: ${appeal.answer}, by ${decision.answeredBy}` : null,
  })}
  <p class="links"><a href="${exportUrl(id, 'text')}">Export as text</a> <a href="${exportUrl(id, 'json')}">Export as JSON</a></p>
  <p class="quiet">The export has the decision and its grounds, but not who reported.</p>
</section>`

/** The acts that are possible now. The endpoints check again. */
function actsPart(desk: Desk, { id, state, acts }: WholeCase): Html {
  const form = (act: string, button: string, inputs: Html, isDangerous = false): Html =>
    actForm(desk, {
      id: act,
      act,
      back: caseUrl(id),
      button,
      inputs,
      isDangerous,
      fields: { id: String(id) },
      asksReason: false,
    })
  const why = textArea('why', 'Reason, which is mailed to the account holder')
  return html`
<section class="card">
  <h2>Act</h2>
  ${state === 'open' && form('case-decide', 'Decide', html`${choice('decision', 'Decision', acts)}${why}`, true)}
  ${state === 'appealed' && form('case-answer', 'Answer the appeal', html`${choice('outcome', 'Outcome', ['upheld', 'reversed'])}${why}`, true)}
  ${form('case-note', 'Add a note', textArea('note', 'Note for moderators'))}
  ${['open', 'appealed'].includes(state) && form('case-deadline', 'Move the deadline', field({ name: 'days', label: 'Days from now', required: true, maxLength: 3 }))}
</section>`
}
