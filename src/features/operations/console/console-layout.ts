/** The frame of the console's pages, and parts that several pages share. */
import { html, type Html, type Phrase, type Value, type Wording } from '../../../http/html.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { page } from '../../../http/page.ts'
import type { InsideAnswer } from '../../../http/inside.ts'
import { mayRole, type Act } from '../operators/operators.ts'
import { errorNote, field, hidden } from '../../access/page-parts/page-parts.ts'
import type { PageCall } from '../../access/page-parts/page-parts.ts'
import { consoleProof, type Desk } from './console-session.ts'
import { consoleTexts as texts } from './console-texts.ts'

/** Stricter than on other pages: it allows no request but for the stylesheet, and a script only to use a passkey. */
const policy = (hasScript: boolean): string =>
  `default-src 'none'; style-src 'self'; ${hasScript ? "script-src 'self'; " : ''}img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`

export interface Shown {
  title: Wording
  body: Html
  status?: number
  /** URL of a script of ours. */
  script?: string
}

export const bare = (call: PageCall, { title, body, status, script }: Shown, wide = false): Promise<Response> =>
  page(call, {
    title,
    body,
    status,
    wide,
    script,
    headers: { 'Content-Security-Policy': policy(script !== undefined) },
  })

const places: readonly [path: string, name: Phrase, act: Act][] = [
  ['/admin', texts.overview, 'signIn'],
  ['/admin/accounts', texts.accounts, 'readAccounts'],
  ['/admin/cases', texts.cases, 'moderate'],
  ['/admin/sign-ups', texts.signUps, 'readAccounts'],
  ['/admin/invites', texts.invites, 'invite'],
  ['/admin/waitlist', texts.waitlist, 'invite'],
  ['/admin/work', texts.work, 'observe'],
  ['/admin/network', texts.network, 'observe'],
  ['/admin/agents', texts.agents, 'readAccounts'],
  ['/admin/pushes', texts.pushes, 'operate'],
  ['/admin/requests', texts.requests, 'observe'],
  ['/admin/configuration', texts.configuration, 'operate'],
  ['/admin/audit', texts.audit, 'readAudit'],
  ['/admin/operators', texts.operators, 'signIn'],
]

/** A page of the console for someone who is signed in. */
export function framed(desk: Desk, { title, body, status, script }: Shown): Promise<Response> {
  const { call, who } = desk
  const links = places
    .filter(([, , act]) => mayRole(who.role, act))
    .map(
      ([path, name]) => html`<a href="${path}"${call.url.pathname === path && html` aria-current="page"`}>${name}</a> `,
    )
  const frame = html`
<section class="card">
  <div class="row">
    <div class="tight"><h1 class="name">${title}</h1><p class="quiet">${texts.actAs({ role: texts[who.role] })}</p></div>
    <form method="post" action="/admin/sign-out">${consoleProof(desk)}<button class="small">${texts.signOut}</button></form>
  </div>
  <nav class="links" aria-label="${texts.console}">${links}</nav>
</section>
${body}`
  return bare(call, { title, body: frame, status, script }, true)
}

/** What the server says about itself is in English, as its log is. */
export const inEnglish = (text: string): Html => html`<span lang="en">${text}</span>`

/** Returns the sentence of a refusal; null for any other response. */
export const refusalNote = (answer: InsideAnswer): Html | null =>
  answer.ok ? null : errorNote({ message: inEnglish(answer.message) })

/** Returns the body of a response; `none` for a refusal. */
export const bodyOf = <Body>(answer: InsideAnswer, none: Body): Body => (answer.ok ? (answer.body as Body) : none)

/** A page that shows a refusal alone. */
export const refusedPage = (
  desk: Desk,
  title: Wording,
  answer: Extract<InsideAnswer, { ok: false }>,
): Promise<Response> =>
  framed(desk, { title, status: answer.status, body: html`<section class="card">${refusalNote(answer)}</section>` })

export interface ActForm {
  act: string
  /** The page to link to afterwards. */
  back: string
  button: Wording
  fields?: Record<string, string>
  inputs?: Html | null
  isDangerous?: boolean
  /** Unique in the page. */
  id: string
  /** Whether the form asks for the reason. */
  asksReason?: boolean
}

/** A form for an act, folded away behind its name. */
export const actForm = (desk: Desk, form: ActForm): Html => html`
<details>
  <summary>${form.button}</summary>
  <form method="post" action="/admin/act" class="stack">
    ${consoleProof(desk)}
    ${hidden({ act: form.act, back: form.back, ...form.fields })}
    ${form.inputs}
    ${form.asksReason !== false && field({ id: `${form.id}-reason`, name: 'reason', label: texts.reason, required: true, maxLength: 500 })}
    <div><button class="${form.isDangerous ? 'danger' : ''}">${form.button}</button></div>
  </form>
</details>`

export const noteRow = (
  title: Value,
  lines: readonly (Html | Wording | null | false)[],
  after: Html | null = null,
): Html => html`
<li><div class="body"><strong>${title}</strong>${lines.map((line) => line && html`<small>${line}</small>`)}${after}</div></li>`

export const listOf = (rows: readonly Html[], empty: Wording): Html =>
  rows.length === 0 ? html`<p class="note">${empty}</p>` : html`<ul class="list">${rows}</ul>`

/** Rows on a page if each row has a form, or, in one list, two: a page takes no more than 60 kB. */
export const FORM_ROWS = 12
export const TWO_FORM_ROWS = 10

/** The link to the next page of a list. On a page with several lists, each list has a parameter of its own. */
export function moreLink({ call: { url } }: Desk, cursor: string | undefined, name = 'cursor'): Html | null {
  if (cursor === undefined) return null
  const query = new URLSearchParams(url.searchParams)
  query.set(name, cursor)
  query.delete('done')
  return html`<p class="links"><a href="${`${url.pathname}?${query}`}">${texts.more}</a></p>`
}

/** Returns this page's rows of a list that the endpoint returned whole, and the link to the next page. */
export function pieceOf<Row>(
  desk: Desk,
  rows: readonly Row[],
  size: number,
  name = 'cursor',
): { shown: readonly Row[]; more: Html | null } {
  const given = desk.call.url.searchParams.get(name) ?? ''
  const first = /^\d{1,9}$/.test(given) ? Number(given) : 0
  const next = first + size
  return { shown: rows.slice(first, next), more: moreLink(desk, next < rows.length ? String(next) : undefined, name) }
}

/** Facts with their names. Those without a value are left out. */
export const factList = (
  facts: readonly (readonly [name: Wording, value: Html | Wording | number | null | undefined])[],
): Html => html`
<dl class="facts">${facts.map(([name, value]) => value !== null && value !== undefined && html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

/** Returns the word for a state that an endpoint names; the name itself if there is none. */
export const wordFor = (words: Readonly<Record<string, Wording>>, name: string): Wording =>
  Object.hasOwn(words, name) ? words[name]! : name

/** States of accounts. */
export const accountStates = {
  active: texts.active,
  deactivated: texts.deactivated,
  takendown: texts.takendown,
} as const

/** The program, and the network that it was used from. */
export function placeOf(openedWith: string, network: string | null): Wording {
  const program = programPhrase(openedWith)
  return network === null ? program : texts.fromNetwork({ program, network })
}

/** Who acted, or on what: a DID or an id of a kind, or else a word of the log. */
export const actorName = (actor: string): Html | string => (actor.includes(':') ? actor : inEnglish(actor))

/** The minute of a time in RFC 3339, in UTC. */
export const minuteOf = (time: string): Html =>
  html`<time class="whole" datetime="${time}">${time.slice(0, 16).replace('T', ' ')}</time>`
