/** Who operates the server, where they are signed in, and what they did. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole, roles, type OperatorAccount } from '../operators/operators.ts'
import { accountLink } from './console-accounts.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  actorName,
  bodyOf,
  FORM_ROWS,
  framed,
  inEnglish,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  placeOf,
  refusalNote,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { peopleTexts as texts } from './people-texts.ts'

const AUDIT_ROWS = 50
const SESSIONS = 'sessions'
const BACK = '/admin/operators'

interface Sessions {
  sessions: {
    id: string
    did: string
    handle: string | null
    kind: string
    isThis: boolean
    openedAt: string
    usedAt: string
    openedWith: string | null
    openedFrom: string | null
  }[]
  cursor?: string
}
interface Operators {
  operators: { did: string; handle: string | null; role: OperatorAccount['role']; givenBy: string; givenAt: string }[]
  cursor?: string
}

const sessionKinds = { browser: texts.browser, program: texts.program } as const
const sessionKind = (isThis: boolean, kind: string): Wording =>
  isThis ? texts.thisBrowser : wordFor(sessionKinds, kind)

export async function operatorsPage(desk: Desk): Promise<Response> {
  const place = new URLSearchParams({
    limit: String(FORM_ROWS),
    cursor: desk.call.url.searchParams.get(SESSIONS) ?? '',
  })
  const answer = await ask(desk, `/v1/admin/sessions?${place}`)
  const { sessions, cursor } = bodyOf<Sessions>(answer, { sessions: [] })
  return framed(desk, {
    title: consoleTexts.operators,
    body: html`
${mayRole(desk.who.role, 'readRoles') && (await rolesPart(desk))}
<section class="card">
  <h2>${texts.sessions}</h2>
  ${refusalNote(answer)}
  ${listOf(
    sessions.map(({ id, did, handle, kind, isThis, openedAt, usedAt, openedWith, openedFrom }) =>
      noteRow(
        handle ?? did,
        [
          openedWith === null
            ? sessionKind(isThis, kind)
            : texts.kindNamed({ kind: sessionKind(isThis, kind), name: placeOf(openedWith, openedFrom) }),
          texts.opened({ time: minuteOf(openedAt), used: minuteOf(usedAt) }),
        ],
        isThis
          ? null
          : actForm(desk, {
              id: `session-${id}`,
              act: 'end-session',
              back: BACK,
              button: consoleTexts.end,
              fields: { id },
            }),
      ),
    ),
    texts.noSessions,
  )}
  ${moreLink(desk, cursor, SESSIONS)}
</section>`,
  })
}

const roleChoice = (): Html => html`
<div class="field">
  <label for="role">${texts.role}</label>
  <select id="role" name="role">${roles.toReversed().map((role) => html`<option value="${role}">${consoleTexts[role]}</option>`)}</select>
</div>`

async function rolesPart(desk: Desk): Promise<Html> {
  const { searchParams } = desk.call.url
  const cursor = searchParams.get('cursor') ?? ''
  const answer = await ask(desk, `/v1/admin/operators?limit=${FORM_ROWS}&cursor=${encodeURIComponent(cursor)}`)
  const { operators, cursor: next } = bodyOf<Operators>(answer, { operators: [] })
  const mayManage = mayRole(desk.who.role, 'manageRoles')
  return html`
<section class="card">
  <h2>${texts.roles}</h2>
  ${refusalNote(answer)}
  ${mayManage && actForm(desk, { id: 'role', act: 'role', back: BACK, button: texts.giveRole, inputs: html`${field({ name: 'account', label: texts.roleAccount, required: true })}${roleChoice()}` })}
  ${listOf(
    operators.map(({ did, handle, role, givenBy, givenAt }, i) =>
      noteRow(
        accountLink({ did, handle }),
        [consoleTexts[role], texts.roleSince({ time: minuteOf(givenAt), actor: actorName(givenBy) })],
        mayManage
          ? actForm(desk, {
              id: `role-${i}`,
              act: 'role',
              back: BACK,
              button: texts.removeRole,
              isDangerous: true,
              fields: { account: did, role: '' },
            })
          : null,
      ),
    ),
    texts.noRoles,
  )}
  ${moreLink(desk, next)}
</section>`
}

interface Audit {
  events: {
    id: string
    actor: string
    action: string
    subject?: string
    outcome: string
    detail?: string
    reason?: string
    createdAt: string
  }[]
  cursor?: string
}

export async function auditPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const query = new URLSearchParams({ limit: String(AUDIT_ROWS) })
  for (const name of ['action', 'actor', 'subject', 'cursor']) {
    const value = searchParams.get(name)?.trim() ?? ''
    if (value !== '') query.set(name, value)
  }
  const answer = await ask(desk, `/v1/admin/audit?${query}`)
  const { events, cursor } = bodyOf<Audit>(answer, { events: [] })
  return framed(desk, {
    title: consoleTexts.audit,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <details${query.size > 1 && html` open`}>
    <summary>${texts.filter}</summary>
    <form method="get" action="/admin/audit" class="stack">
      ${field({ name: 'actor', label: texts.actor, value: query.get('actor') ?? '' })}
      ${field({ name: 'action', label: texts.action, value: query.get('action') ?? '' })}
      ${field({ name: 'subject', label: texts.auditSubject, value: query.get('subject') ?? '' })}
      <div><button>${texts.filter}</button></div>
    </form>
  </details>
  ${listOf(
    events.map(({ actor, action, subject, detail, reason, createdAt }) =>
      noteRow(inEnglish(action.replaceAll('_', ' ')), [
        subject !== undefined && texts.aboutSubject({ subject: actorName(subject) }),
        reason !== undefined && consoleTexts.because({ reason }),
        detail !== undefined && html`<code>${detail}</code>`,
        consoleTexts.by({ actor: actorName(actor), time: minuteOf(createdAt) }),
      ]),
    ),
    consoleTexts.nothingDone,
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}
