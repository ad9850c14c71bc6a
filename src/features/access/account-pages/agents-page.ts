/**
 * What account holders see of programs that act for them: a part of the account page, and the page of what one program
 * did.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { notFound } from '../../../http/errors.ts'
import { html, inEnglish, plainName, type Html, type Phrase, type Value, type Wording } from '../../../http/html.ts'
import { bySeq, placeIn } from '../../../http/paged-list.ts'
import { page } from '../../../http/page.ts'
import { listPhrase, sizePhrase, timePhrase } from '../../../http/texts.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { singleScope } from '../../../protocol/scopes.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import {
  auditPage,
  clampedScopes,
  visibleAgent,
  type AgentEvent,
  type ListedAgent,
  type Registration,
} from '../../agents/agents/agents.ts'
import { accountForm, accountUrl, outcomeOf, partOf, type AccountView } from './account-view.ts'
import { agentsTexts as texts } from './agents-texts.ts'
import { collectionWords, wordsOf } from '../scope-words/scope-words.ts'
import { day, hidden, type PageCall } from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../pages/pages.ts'

const RECORD_PATH = '/account/agents/record'
const EVENTS_PER_PAGE = 50

const recordUrl = (did: Did, id: string, more: Record<string, string> = {}): string =>
  holderUrl(RECORD_PATH, did, { id, ...more })

/** The known facts about an agent. Its own name is in quotes, because it is unverified. */
function nameOf({ issuer, subject, type, clientName, openedWith }: Registration): Phrase {
  if (type === 'identity_assertion') return texts.vouched({ subject: plainName(subject ?? ''), issuer })
  if (type === 'child') return texts.child
  if (clientName !== null) return texts.quoted({ name: plainName(clientName) })
  return openedWith === null ? texts.noProvider : texts.quoted({ name: programPhrase(openedWith) })
}

/** The details that distinguish agents of the same name. */
function registeredWords({ type, clientName, openedWith, openedFrom, createdAt }: Registration): Html | null {
  if (type === 'child') return null
  const isVouchedFor = type === 'identity_assertion'
  const claim = isVouchedFor ? clientName !== null && texts.calls({ name: plainName(clientName) }) : texts.notVouched
  const program = clientName === null && !isVouchedFor ? null : openedWith
  return html`
    ${claim && html`<small>${claim}</small>`}
    <small>${registration(createdAt, program, openedFrom)}</small>`
}

function registration(at: Millis, opener: string | null, network: string | null): Phrase {
  const time = timePhrase(at)
  if (opener === null) return network === null ? texts.registered({ time }) : texts.registeredFrom({ time, network })
  const program = programPhrase(opener)
  return network === null
    ? texts.registeredWith({ time, program })
    : texts.registeredWithFrom({ time, program, network })
}

const isEnded = ({ status }: ListedAgent): boolean => status === 'revoked'

export function agentsPart(config: Config, view: AccountView): Html | null {
  const outcome = outcomeOf(view, 'agents')
  if (view.agents.length === 0 && outcome === null) return null
  const { shown, more } = partOf(
    view,
    'agents',
    view.agents.toSorted((a, b) => Number(isEnded(a)) - Number(isEnded(b))),
  )
  const ended = shown.filter(isEnded)
  const present = shown.filter((agent) => !isEnded(agent))
  return html`
<section class="card" id="agents">
  <div class="tight"><h2>${texts.title}</h2><p class="quiet">${texts.lead}</p></div>
  ${outcome}
  ${present.length === 0 ? html`<p class="note">${texts.none}</p>` : html`<ul class="list">${present.map((agent) => agentRow(config, view, agent))}</ul>`}
  ${ended.length > 0 && html`<details><summary>${texts.ended}</summary><ul class="list">${ended.map((agent) => endedRow(view, agent))}</ul></details>`}
  ${more}
</section>`
}

function agentRow(config: Config, view: AccountView, agent: ListedAgent): Html {
  const { id, status, confirmedAt, createdAt, lastUsedAt } = agent
  const name = nameOf(agent)
  const from = day(confirmedAt ?? createdAt)
  const isWaiting = status === 'active'
  const scopes = clampedScopes(config, agent)
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    ${
      isWaiting
        ? html`<small>${texts.waiting({ day: day(createdAt) })}</small>`
        : html`<small>${lastUsedAt === null ? texts.sinceUnused({ from }) : texts.sinceUsed({ from, used: day(lastUsedAt) })}</small>`
    }
    ${registeredWords(agent)}
    ${!isWaiting && html`<details><summary><small>${texts.mayDo}</small></summary><ul>${scopes.map(scopeLine)}${privateLine(agent)}</ul></details>`}
    <a href="${recordUrl(view.account.did, id)}"><small>${texts.did}</small></a>
  </div>
  ${accountForm(view, 'agents', html`${hidden({ id })}<button class="small danger" aria-label="${texts.endAccessOf({ name })}">${texts.endAccess}</button>`)}
</li>`
}

const endedRow = ({ account }: AccountView, agent: ListedAgent): Html => html`
<li>
  <div class="body">
    <strong>${nameOf(agent)}</strong>
    <small>${texts.endedOn({ day: day(agent.updatedAt) })}</small>
    ${registeredWords(agent)}
    <a href="${recordUrl(account.did, agent.id)}"><small>${texts.did}</small></a>
  </div>
</li>`

const privateLine = ({ privateReads }: Registration): Html =>
  html`<li><small>${privateReads ? texts.privateReads : texts.noPrivateReads}</small></li>`

const scopeLine = (scope: string): Html => html`<li><small>${wordsOf(singleScope(scope)).what}</small></li>`

// What an agent did

async function recordPage(call: PageCall, { account: { did } }: Holder): Promise<Response> {
  const { ctx, url } = call
  const { searchParams } = url
  const agent = await visibleAgent(ctx.db, did, searchParams.get('id') ?? '')
  if (agent === null) throw notFound(inEnglish(texts.unknown))
  const { events, cursor } = await auditPage(ctx, agent.id, {
    beforeSeq: placeIn(searchParams, bySeq)?.seq ?? null,
    limit: EVENTS_PER_PAGE,
  })
  return page(call, {
    title: texts.recordTitle,
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${nameOf(agent)}</h1>
    ${registeredWords(agent)}
    <p class="quiet">${texts.recordLead}</p>
  </div>
  ${events.length === 0 ? html`<p class="note">${texts.recordNone}</p>` : html`<ul class="list">${events.map(eventRow)}</ul>`}
  <p class="links">
    ${cursor !== null && html`<a href="${recordUrl(did, agent.id, { cursor })}">${texts.older}</a> `}<a href="${accountUrl(did)}#agents">${texts.back}</a>
  </p>
</section>`,
  })
}

const eventRow = (event: AgentEvent): Html => html`
<li><div class="body"><strong>${eventWords(event)}</strong><small>${timePhrase(event.createdAt)}</small></div></li>`

const enders: Readonly<Record<string, Phrase>> = {
  provider_set: texts.actEndedByProvider,
  operator: texts.actEndedByOperator,
}

function eventWords({ type, detail }: AgentEvent): Wording {
  const member = (name: string): string => String(detail?.[name] ?? '')
  switch (type) {
    case 'registered':
      return texts.actRegistered
    case 'claim_initiated':
      return texts.actClaim
    case 'claim_confirmed':
      return texts.actConfirmed
    case 'claim_expired':
      return texts.actExpired
    case 'token_exchanged':
      return texts.actToken
    case 'repo_write':
      return changeWords(detail ?? {})
    case 'blob_upload':
      return texts.actUploaded({ type: plainName(member('mime_type')), size: sizePhrase(Number(member('size'))) })
    case 'preferences':
      return texts.actPreferences
    case 'service_call':
      return texts.actCalled({ method: plainName(member('method')) })
    case 'revoked':
      return enders[member('source')] ?? texts.actEnded
  }
}

const changes = ['creates', 'updates', 'deletes'] as const
type Changes = Record<(typeof changes)[number] | 'kinds', Value>

/** The words for a write, by the kinds of changes that it made, in this order. */
const changeTexts: Readonly<Record<string, (values: Changes) => Phrase>> = {
  creates: texts.actCreates,
  updates: texts.actUpdates,
  deletes: texts.actDeletes,
  'creates updates': texts.actCreatesUpdates,
  'creates deletes': texts.actCreatesDeletes,
  'updates deletes': texts.actUpdatesDeletes,
  'creates updates deletes': texts.actCreatesUpdatesDeletes,
}

function changeWords(detail: Record<string, unknown>): Wording {
  const [creates, updates, deletes] = [Number(detail['creates']), Number(detail['updates']), Number(detail['deletes'])]
  const counts = { creates, updates, deletes }
  const { collections } = detail
  const kinds = listPhrase(Array.isArray(collections) ? collections.map((name) => collectionWords(String(name))) : [])
  return changeTexts[changes.filter((name) => counts[name] > 0).join(' ')]?.({ ...counts, kinds }) ?? kinds
}

export const agentRecordRoutes: Endpoint[] = [holderPage(RECORD_PATH, recordPage)]
