/** The page that lists what happened to an account in the last 90 days. */
import type { Endpoint } from '../../../http/endpoint.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { html, plainName, type Html, type Phrase } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import { pageOf } from '../../../http/paged-list.ts'
import { timePhrase } from '../../../http/texts.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import {
  EVENT_KEPT_DAYS,
  eventPages,
  eventsOf,
  type ListedEvent,
  type Means,
  type StoredEvent,
} from '../../identity/account-events/account-events.ts'
import { accountName, type PageCall } from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../pages/pages.ts'
import { accountUrl } from './account-view.ts'
import { eventTexts as texts } from './event-texts.ts'

const PATH = '/account/activity'

export const eventsUrl = (did: Did, more: Record<string, string> = {}): string => holderUrl(PATH, did, more)

/** The words for a sign-in, by its means. */
const signInWords: Readonly<Record<Means, Phrase>> = {
  password: texts.byPassword,
  'password on a page': texts.onPage,
  'app password': texts.byAppPassword,
  passkey: texts.byPasskey,
  wallet: texts.byWallet,
}

const eventWords: Readonly<Record<Exclude<ListedEvent, 'signedIn'>, Phrase>> = texts

/** An event that only a newer version knows is shown by its name. */
function wordsOf({ event, means }: StoredEvent): Phrase | string {
  if (means !== null) return Object.hasOwn(signInWords, means) ? signInWords[means as Means] : means
  return Object.hasOwn(eventWords, event) ? eventWords[event as keyof typeof eventWords] : event
}

export const eventRow = (event: StoredEvent): Html => html`
<li>
  <div class="body">
    <strong>${wordsOf(event)}</strong>
    ${event.subject !== null && html`<code>${plainName(event.subject, MAX_SUBJECT_CHARS)}</code>`}
    <small><time datetime="${wireTime(event.at)}">${timePhrase(event.at)}</time></small>
    ${event.times > 1 && html`<small>${texts.times({ count: event.times })}</small>`}
    ${event.byOperator === 1 ? html`<small>${texts.byOperator}</small>` : placeLines(event)}
  </div>
</li>`

const MAX_SUBJECT_CHARS = 300

const placeLines = ({ program, network }: StoredEvent): Html => html`
${program !== null && html`<small>${texts.withProgram({ program: programPhrase(program, MAX_SUBJECT_CHARS) })}</small>`}
${network !== null && html`<small>${texts.fromNetwork({ network })}</small>`}`

async function eventsPage(call: PageCall, { account }: Holder): Promise<Response> {
  const { ctx, url } = call
  const { did } = account
  const { rows, cursor } = await pageOf(url.searchParams, eventPages, (after, limit) =>
    eventsOf(ctx, did, { after, limit }),
  )
  return page(call, {
    title: texts.title,
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1>${texts.title}</h1>
    <p><strong>${accountName(account)}</strong></p>
    <p class="quiet">${texts.lead({ days: EVENT_KEPT_DAYS })}</p>
  </div>
  ${rows.length === 0 ? html`<p class="note">${texts.none}</p>` : html`<ul class="list">${rows.map(eventRow)}</ul>`}
  <p class="links">${cursor !== undefined && html`<a href="${eventsUrl(did, { cursor })}">${texts.older}</a> `}<a href="${accountUrl(did)}">${texts.back}</a></p>
</section>`,
  })
}

export const eventsPageRoutes: Endpoint[] = [holderPage(PATH, eventsPage)]
