/** The page on which an account holder sees what delegates did. */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, plainName, type Html, type Value } from '../../../http/html.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { page } from '../../../http/page.ts'
import { listPhrase, timePhrase } from '../../../http/texts.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import { delegateActs, type DelegationEvent } from '../delegations/delegations.ts'
import { appName } from '../oauth/oauth.ts'
import { accountName, type PageCall } from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../pages/pages.ts'
import { collectionWords } from '../scope-words/scope-words.ts'
import { sharingTexts as texts } from './sharing-texts.ts'

const PATH = '/account/sharing/record'
const MAX_ACTS = 50
const MAX_DETAIL_CHARS = 300

export const delegateActsUrl = (did: Did, more: Record<string, string> = {}): string => holderUrl(PATH, did, more)

type NamedEvent = Awaited<ReturnType<typeof delegateActs>>[number]

async function actsPage(call: PageCall, { account }: Holder): Promise<Response> {
  const { ctx, url } = call
  const { did } = account
  const delegation = url.searchParams.get('delegation')
  const { rows, cursor } = await pageOf(url.searchParams, { cursor: bySeq, maxRows: MAX_ACTS }, (before, limit) =>
    delegateActs(ctx, did, delegation, before, limit),
  )
  const same: Record<string, string> = delegation === null ? {} : { delegation }
  return page(call, {
    title: texts.recordTitle,
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1>${texts.recordTitle}</h1>
    <p><strong>${accountName(account)}</strong></p>
    <p class="quiet">${texts.recordLead}</p>
  </div>
  ${rows.length === 0 ? html`<p class="note">${texts.recordNone}</p>` : html`<ul class="list">${rows.map(actRow)}</ul>`}
  <p class="links">${cursor !== undefined && html`<a href="${delegateActsUrl(did, { ...same, cursor })}">${texts.older}</a> `}<a href="${holderUrl('/account/sharing', did)}">${texts.backToSharing}</a></p>
</section>`,
  })
}

const actRow = (event: NamedEvent): Html => html`
<li>
  <div class="body">
    <strong>${actWords(event)}</strong>
    ${event.type === 'repo_write' && html`<small>${kindsOf(event)}</small>`}
    <small>${event.handle === null ? (event.delegateDid ?? texts.gone) : `@${event.handle}`}</small>
    <small><time datetime="${wireTime(event.createdAt)}">${timePhrase(event.createdAt)}</time></small>
  </div>
</li>`

const member = ({ detail }: DelegationEvent, name: string): string =>
  plainName(String(detail?.[name] ?? ''), MAX_DETAIL_CHARS)

/** The words for an event, by its type. */
const words: Readonly<Record<DelegationEvent['type'], (event: DelegationEvent) => Value>> = {
  invited: () => texts.actInvited,
  accepted: () => texts.actAccepted,
  app_signed_in: (event) => texts.actApp({ app: appName(member(event, 'client')) }),
  repo_write: (event) => listPhrase(changesOf(event)),
  blob_upload: (event) => texts.actUploaded({ type: member(event, 'mime_type') }),
  preferences: () => texts.actPreferences,
  service_call: (event) => texts.actCalled({ method: member(event, 'method'), service: member(event, 'service') }),
  ended: () => texts.actEnded,
}

/** An event that only a newer version knows is shown by its name. */
const actWords = (event: DelegationEvent): Value =>
  Object.hasOwn(words, event.type) ? words[event.type](event) : event.type

const changes = { creates: texts.actCreated, updates: texts.actUpdated, deletes: texts.actDeleted } as const

const changesOf = ({ detail }: DelegationEvent): Value[] =>
  (Object.keys(changes) as (keyof typeof changes)[]).flatMap((name) => {
    const count = Number(detail?.[name] ?? 0)
    return count > 0 ? [changes[name]({ count })] : []
  })

function kindsOf({ detail }: DelegationEvent): Value {
  const collections = detail?.['collections']
  return Array.isArray(collections) ? listPhrase(collections.map((name) => collectionWords(String(name)))) : null
}

export const delegateActsRoutes: Endpoint[] = [holderPage(PATH, actsPage)]
