/** The page that tells account holders how the network sees their account, and who can mend what is broken. */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountReach, serverReach, type Link } from '../../operations/reach/reach.ts'
import { goodNote, type PageCall } from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../pages/pages.ts'
import { sentence } from '../scope-words/scope-words.ts'
import { accountUrl } from './account-view.ts'
import { networkTexts as texts } from './network-texts.ts'

const PATH = '/account/network'

export const networkUrl = (did: Did): string => holderUrl(PATH, did)

async function networkPage(call: PageCall, { account }: Holder): Promise<Response> {
  const { ctx } = call
  const [own, server] = await Promise.all([accountReach(ctx, account), serverReach(ctx)])
  const isWell = [...own, ...server].every(({ state }) => state === 'ok')
  return page(call, {
    title: texts.title,
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1>${texts.title}</h1>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${goodNote(isWell ? texts.well : null)}
  <section class="stack"><h2>${texts.account}</h2><ul class="list">${own.map((link) => row(link, ownRemedy(link) ?? askOperator(ctx.config)))}</ul></section>
  <hr>
  <section class="stack"><h2>${texts.server}</h2><ul class="list">${server.map((link) => row(link, askOperator(ctx.config)))}</ul></section>
  <p class="links"><a href="${accountUrl(account.did)}">${texts.back}</a></p>
</section>`,
  })
}

/** Findings are in English in every language, as in the response of the endpoint. */
const found = (text: string): Html => html`<span lang="en">${text}</span>`

const row = ({ name, state, text }: Link, remedy: Phrase): Html => html`
<li>
  <div class="body">
    <strong>${texts[state]({ name: found(sentence(name)) })}</strong>
    <small>${found(sentence(text))}</small>
    ${state !== 'ok' && html`<small>${remedy}</small>`}
  </div>
</li>`

const ownRemedy = ({ holderRemedy }: Link): Phrase | null =>
  holderRemedy === null ? null : texts.toDo({ remedy: found(holderRemedy) })

const askOperator = ({ contact: { email } }: Config): Phrase =>
  email === null ? texts.tellOperator : texts.tellOperatorAt({ email })

export const networkRoutes: Endpoint[] = [
  // Limited, because it asks the directory, DNS, relays and the AppView.
  holderPage(PATH, networkPage, { limit: 'accountReach' }),
]
