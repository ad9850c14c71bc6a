/** A burst of sign-ups: the accounts that were made within a time, and what undoes them together. */
import { html, type Html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole } from '../operators/operators.ts'
import { accountUrl } from './console-accounts.ts'
import { actForm, framed, listOf, minuteOf, moreLink, noteRow, refusalNote } from './console-layout.ts'
import { ask, type Desk } from './console-session.ts'

const ROWS = 50
/** The busiest hours are shown. */
const HOURS = 12

interface SignUps {
  from: string
  until: string
  count: number
  accounts: {
    did: string
    handle: string | null
    emailDomain: string | null
    createdAt: string
    status: string
    role: string | null
    records: number
    blobs: number
    arrived: boolean
  }[]
  hours: { hour: string; count: number }[]
  burst: number
  cursor?: string
}

const HOUR_MILLIS = 3_600_000
const windowUrl = (from: string, until: string): string =>
  `/admin/sign-ups?${new URLSearchParams({ from, until }).toString()}`

export async function signUpsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const query = new URLSearchParams({ limit: String(ROWS) })
  for (const name of ['from', 'until', 'cursor']) query.set(name, searchParams.get(name)?.trim() ?? '')
  const answer = await ask(desk, `/v1/admin/sign-ups?${query}`)
  const found = answer.ok ? (answer.body as SignUps) : null
  return framed(desk, {
    title: 'Sign-ups',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  ${found && hoursPart(found)}
  <form method="get" action="/admin/sign-ups" class="stack">
    ${field({ name: 'from', label: 'From (UTC)', value: found?.from ?? '', maxLength: 30 })}
    ${field({ name: 'until', label: 'Until (UTC)', value: found?.until ?? '', maxLength: 30 })}
    <div><button>Show</button></div>
  </form>
</section>
${found && accountsPart(desk, found)}`,
  })
}

function hoursPart({ hours, burst }: SignUps): Html {
  const busiest = hours.toSorted((a, b) => b.count - a.count).slice(0, HOURS)
  return html`
<h2>Busiest hours of the last days</h2>
${listOf(
  busiest.map(({ hour, count }) => {
    const until = new Date(Date.parse(hour) + HOUR_MILLIS).toISOString()
    const isBurst = burst > 0 && count >= burst
    return noteRow(html`<a href="${windowUrl(hour, until)}">${minuteOf(hour)}</a>`, [
      `${count} accounts${isBurst ? ', a burst' : ''}`,
    ])
  }),
  'No account was made.',
)}`
}

function accountsPart(desk: Desk, found: SignUps): Html {
  const { from, until, count, accounts, cursor } = found
  const undoable = accounts.filter(({ role }) => role === null)
  const acts = ['takedown', 'restore', ...(mayRole(desk.who.role, 'deleteAccounts') ? ['delete'] : [])]
  return html`
<section class="card">
  <h2>Accounts</h2>
  <p class="quiet">${count} accounts were made in this time.</p>
  ${listOf(
    accounts.map((one) =>
      noteRow(html`<a href="${accountUrl(one.did)}">${one.handle ?? one.did}</a>`, [
        html`${one.status}${one.role !== null && html`, ${one.role}`}${one.arrived && ', moved here'}, made ${minuteOf(one.createdAt)}`,
        `${one.emailDomain === null ? 'no address' : `mail at ${one.emailDomain}`}, ${one.records} records, ${one.blobs} blobs`,
      ]),
    ),
    'No account was made.',
  )}
  ${moreLink(desk, cursor)}
  ${
    mayRole(desk.who.role, 'moderate') &&
    undoable.length > 0 &&
    actForm(desk, {
      id: 'undo-sign-ups',
      act: 'undo-sign-ups',
      back: windowUrl(from, until),
      button: 'Undo all sign-ups on this page',
      isDangerous: true,
      fields: { from, until },
      inputs: html`
<div class="field">
  <label for="undoing">What to do</label>
  <select id="undoing" name="undoing">${acts.map((name) => html`<option value="${name}">${name}</option>`)}</select>
</div>
<fieldset><legend>Accounts</legend><ul class="list">${undoable.map(({ did, handle }, i) => html`<li><label class="check"><input type="checkbox" name="did-${i}" value="${did}" checked> <span>${handle ?? did}</span></label></li>`)}</ul></fieldset>`,
    })
  }
</section>`
}
