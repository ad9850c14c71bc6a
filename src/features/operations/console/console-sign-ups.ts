/** A burst of sign-ups: the accounts made in a period, and the form that undoes them together. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { factsPhrase } from '../../../http/texts.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole, type OperatorAccount } from '../operators/operators.ts'
import { accountLink } from './console-accounts.ts'
import {
  accountStates,
  actForm,
  framed,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  refusalNote,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { peopleTexts as texts } from './people-texts.ts'
import { ask, type Desk } from './console-session.ts'

const ROWS = 50
/** How many of the busiest hours are shown. */
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
    role: OperatorAccount['role'] | null
    records: number
    blobs: number
    arrived: boolean
  }[]
  hours: { hour: string; count: number }[]
  burst: number
  cursor?: string
}

const windowUrl = (from: string, until: string): string =>
  `/admin/sign-ups?${new URLSearchParams({ from, until }).toString()}`

export async function signUpsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const query = new URLSearchParams({ limit: String(ROWS) })
  for (const name of ['from', 'until', 'cursor']) query.set(name, searchParams.get(name)?.trim() ?? '')
  const answer = await ask(desk, `/v1/admin/sign-ups?${query}`)
  const found = answer.ok ? (answer.body as SignUps) : null
  return framed(desk, {
    title: consoleTexts.signUps,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  ${found && hoursPart(found)}
  <form method="get" action="/admin/sign-ups" class="stack">
    ${field({ name: 'from', label: texts.from, value: found?.from ?? '', maxLength: 30 })}
    ${field({ name: 'until', label: texts.until, value: found?.until ?? '', maxLength: 30 })}
    <div><button>${consoleTexts.show}</button></div>
  </form>
</section>
${found && accountsPart(desk, found)}`,
  })
}

function hoursPart({ hours, burst }: SignUps): Html {
  const busiest = hours.toSorted((a, b) => b.count - a.count).slice(0, HOURS)
  return html`
<h2>${texts.busiest}</h2>
${listOf(
  busiest.map(({ hour, count }) => {
    const until = new Date(Date.parse(hour) + HOUR_MILLIS).toISOString()
    const isBurst = burst > 0 && count >= burst
    return noteRow(html`<a href="${windowUrl(hour, until)}">${minuteOf(hour)}</a>`, [
      (isBurst ? texts.madeBurst : texts.made)({ count }),
    ])
  }),
  texts.noneMade,
)}`
}

const undoings = { takedown: texts.takedown, restore: texts.restore, delete: texts.deleteAct } as const

/** State, role and origin of an account, and when it was made. */
const stateOf = ({ status, role, arrived, createdAt }: SignUps['accounts'][number]): Phrase =>
  factsPhrase([
    wordFor(accountStates, status),
    ...(role === null ? [] : [consoleTexts[role]]),
    ...(arrived ? [texts.arrived] : []),
    texts.madeAt({ time: minuteOf(createdAt) }),
  ])

function accountsPart(desk: Desk, found: SignUps): Html {
  const { from, until, count, accounts, cursor } = found
  const undoable = accounts.filter(({ role }) => role === null)
  const acts = ['takedown', 'restore', ...(mayRole(desk.who.role, 'deleteAccounts') ? ['delete'] : [])]
  return html`
<section class="card">
  <h2>${consoleTexts.accounts}</h2>
  <p class="quiet">${texts.madeInTime({ count })}</p>
  ${listOf(
    accounts.map((one) =>
      noteRow(accountLink(one), [
        stateOf(one),
        texts.holds({
          address: one.emailDomain === null ? texts.noAddress : texts.mailAt({ domain: one.emailDomain }),
          records: texts.heldRecords({ count: one.records }),
          blobs: texts.heldBlobs({ count: one.blobs }),
        }),
      ]),
    ),
    texts.noneMade,
  )}
  ${moreLink(desk, cursor)}
  ${
    mayRole(desk.who.role, 'moderate') &&
    undoable.length > 0 &&
    actForm(desk, {
      id: 'undo-sign-ups',
      act: 'undo-sign-ups',
      back: windowUrl(from, until),
      button: texts.undo,
      isDangerous: true,
      fields: { from, until },
      inputs: html`
<div class="field">
  <label for="undoing">${texts.whatToDo}</label>
  <select id="undoing" name="undoing">${acts.map((name) => html`<option value="${name}">${wordFor(undoings, name)}</option>`)}</select>
</div>
<fieldset><legend>${consoleTexts.accounts}</legend><ul class="list">${undoable.map(({ did, handle }, i) => html`<li><label class="check"><input type="checkbox" name="did-${i}" value="${did}" checked> <span>${handle ?? did}</span></label></li>`)}</ul></fieldset>`,
    })
  }
</section>`
}
