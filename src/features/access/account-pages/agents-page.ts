/**
 * What account holders see of programs that act for them: the part of the account page, and the page of what one of
 * them did.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import { html, inEnglish, plainName, type Html } from '../../../http/html.ts'
import { bySeq, placeIn } from '../../../http/paged-list.ts'
import { page } from '../../../http/page.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { timeInWords } from '../../../base/time-words.ts'
import {
  auditPage,
  clampedScopes,
  visibleAgent,
  type AgentEvent,
  type ListedAgent,
  type Registration,
} from '../../agents/agents/agents.ts'
import { accountForm, accountUrl, outcomeOf, type AccountView } from './account-view.ts'
import { collectionWords, listed, sentence, wordsOf } from '../scope-words/scope-words.ts'
import { day, hidden, seeOther, type PageCall } from '../page-parts/page-parts.ts'
import { holderOf, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const RECORD_PATH = '/account/agents/record'
const EVENTS_PER_PAGE = 50

const recordUrl = (did: Did, id: string, more: Record<string, string> = {}): string =>
  `${RECORD_PATH}?${new URLSearchParams({ account: did, id, ...more })}`

/** The known facts about an agent. Its own name is in quotes, because it is unverified. */
function nameOf({ issuer, subject, type, clientName, openedWith }: Registration): string {
  if (type === 'identity_assertion') return `${plainName(subject ?? '')}, vouched for by ${issuer}`
  if (type === 'child') return 'The agent that this account was made for'
  const name = clientName ?? openedWith
  return name === null ? 'A program without an identity provider' : `“${plainName(name)}”`
}

/** The details that distinguish agents of the same name. */
function registeredWords({ type, clientName, openedWith, openedFrom, createdAt }: Registration): Html | null {
  if (type === 'child') return null
  const claim =
    type === 'identity_assertion'
      ? clientName !== null && html`It calls itself “${plainName(clientName)}”. `
      : 'No identity provider vouches for it. '
  const program = clientName === null && type !== 'identity_assertion' ? null : openedWith
  return html`<small>${claim}Registered on ${timeInWords(createdAt)}${program !== null && html` with ${plainName(program)}`}${openedFrom !== null && html`, from the network ${openedFrom}`}</small>`
}

export function agentsPart(config: Config, view: AccountView): Html | null {
  const outcome = outcomeOf(view, 'agents')
  if (view.agents.length === 0 && outcome === null) return null
  const ended = view.agents.filter(({ status }) => status === 'revoked')
  const present = view.agents.filter(({ status }) => status !== 'revoked')
  return html`
<section class="card" id="agents">
  <div class="tight"><h2>Agents</h2><p class="quiet">Programs that act for you, within the permissions that you confirmed. Ending their access takes effect at once.</p></div>
  ${outcome}
  ${present.length === 0 ? html`<p class="note">No program acts for you.</p>` : html`<ul class="list">${present.map((agent) => agentRow(config, view, agent))}</ul>`}
  ${ended.length > 0 && html`<details><summary>Ended</summary><ul class="list">${ended.map((agent) => endedRow(view, agent))}</ul></details>`}
</section>`
}

function agentRow(config: Config, view: AccountView, agent: ListedAgent): Html {
  const { id, status, confirmedAt, createdAt, lastUsedAt } = agent
  const name = nameOf(agent)
  const isWaiting = status === 'active'
  const scopes = clampedScopes(config, agent)
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    ${
      isWaiting
        ? html`<small>Requested access on ${day(createdAt)}. It can do nothing until you enter the code that it shows.</small>`
        : html`<small>Since ${day(confirmedAt ?? createdAt)}, ${lastUsedAt === null ? 'never used' : html`last used ${day(lastUsedAt)}`}</small>`
    }
    ${registeredWords(agent)}
    ${!isWaiting && html`<details><summary><small>What it may do</small></summary><ul>${scopes.map(scopeLine)}${privateLine(agent)}</ul></details>`}
    <a href="${recordUrl(view.account.did, id)}"><small>What it did</small></a>
  </div>
  ${accountForm(view, 'agents', html`${hidden({ id })}<button class="small danger" aria-label="End access of ${name}">End access</button>`)}
</li>`
}

const endedRow = ({ account }: AccountView, agent: ListedAgent): Html => html`
<li>
  <div class="body">
    <strong>${nameOf(agent)}</strong>
    <small>Ended on ${day(agent.updatedAt)}</small>
    ${registeredWords(agent)}
    <a href="${recordUrl(account.did, agent.id)}"><small>What it did</small></a>
  </div>
</li>`

const privateLine = ({ privateReads }: Registration): Html =>
  html`<li><small>${privateReads ? 'Read private data, such as notifications and bookmarks' : 'No access to private data, such as notifications and bookmarks'}</small></li>`

const scopeLine = (scope: string): Html =>
  html`<li><small>${wordsOf({ scope, grants: [scope], title: null, detail: null }).what}</small></li>`

// What an agent did

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const { searchParams } = call.url
  const holder = await holderOf(call, searchParams.get('account'))
  return holder ? recordPage(call, holder) : seeOther(await signInUrl(call, searchParams.get('account')))
}

async function recordPage({ ctx, url: { searchParams } }: PageCall, { account: { did } }: Holder): Promise<Response> {
  const agent = await visibleAgent(ctx.db, did, searchParams.get('id') ?? '')
  if (agent === null) throw notFound('There is no such agent.')
  const { events, cursor } = await auditPage(ctx, agent.id, {
    beforeSeq: placeIn(searchParams, bySeq)?.seq ?? null,
    limit: EVENTS_PER_PAGE,
  })
  return page(ctx.config, {
    title: 'What an agent did',
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${nameOf(agent)}</h1>
    ${registeredWords(agent)}
    <p class="quiet">What this program did, newest first. Its posts and other records are public, so only their kind and number are listed here.</p>
  </div>
  ${events.length === 0 ? html`<p class="note">No activity yet.</p>` : html`<ul class="list">${events.map(eventRow)}</ul>`}
  <p class="links">
    ${cursor !== null && html`<a href="${recordUrl(did, agent.id, { cursor })}">Older</a> `}<a href="${accountUrl(did)}#agents">Back to your account</a>
  </p>
</section>`,
  })
}

const eventRow = (event: AgentEvent): Html => html`
<li><div class="body"><strong>${eventWords(event)}</strong><small>${timeInWords(event.createdAt)}</small></div></li>`

const enders: Record<string, string> = {
  provider_set: ' by its identity provider',
  operator: ' by the operator of this server',
}

function eventWords({ type, detail }: AgentEvent): string {
  const member = (name: string): string => String(detail?.[name] ?? '')
  switch (type) {
    case 'registered':
      return 'It registered here'
    case 'claim_initiated':
      return 'It requested your confirmation'
    case 'claim_confirmed':
      return 'Its code was confirmed'
    case 'claim_expired':
      return 'Its code expired, or was denied'
    case 'token_exchanged':
      return 'It got access for five minutes'
    case 'repo_write':
      return changeWords(detail ?? {})
    case 'blob_upload':
      return `It uploaded a file (${plainName(member('mime_type'))}, ${member('size')} bytes)`
    case 'preferences':
      return 'It changed your preferences'
    case 'service_call':
      return `It had another service change something for you (${plainName(member('method'))})`
    case 'revoked':
      return `Its access was ended${enders[member('source')] ?? ''}`
  }
}

const verbs = { creates: 'created', updates: 'changed', deletes: 'deleted' } as const

function changeWords(detail: Record<string, unknown>): string {
  const doing = (Object.keys(verbs) as (keyof typeof verbs)[])
    .filter((name) => Number(detail[name]) > 0)
    .map((name) => `${verbs[name]} ${String(detail[name])}`)
  const { collections } = detail
  const kinds = Array.isArray(collections) ? collections.map((name) => inEnglish(collectionWords(String(name)))) : []
  return sentence(`it ${listed(doing)}: ${kinds.join(', ')}`)
}

export const agentRecordRoutes: Endpoint[] = [route('GET', RECORD_PATH, { handler: show })]
