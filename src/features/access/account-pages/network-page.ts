/** The page that tells account holders how the network sees their account, and who can mend what is broken. */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountReach, serverReach, type Link } from '../../operations/reach/reach.ts'
import { goodNote, seeOther, type PageCall } from '../page-parts/page-parts.ts'
import { holderOf, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'
import { sentence } from '../scope-words/scope-words.ts'
import { accountUrl } from './account-view.ts'

const PATH = '/account/network'

export const networkUrl = (did: Did): string => `${PATH}?${new URLSearchParams({ account: did })}`

const states: Record<Link['state'], string> = {
  ok: 'works',
  warning: 'in doubt',
  fault: 'broken',
  unknown: 'unknown',
}

async function networkPage({ ctx }: PageCall, { account }: Holder): Promise<Response> {
  const [own, server] = await Promise.all([accountReach(ctx, account), serverReach(ctx)])
  const isWell = [...own, ...server].every(({ state }) => state === 'ok')
  return page(ctx.config, {
    title: 'How the network sees you',
    wide: true,
    body: html`
<section class="card">
  <div class="tight">
    <h1>How the network sees you</h1>
    <p class="quiet">Others see your posts if every link below works. It was looked at just now.</p>
  </div>
  ${goodNote(isWell ? 'Everything works.' : null)}
  <section class="stack"><h2>Your account</h2><ul class="list">${own.map((link) => row(link, link.holderRemedy ?? askOperator(ctx.config)))}</ul></section>
  <hr>
  <section class="stack"><h2>This server</h2><ul class="list">${server.map((link) => row(link, askOperator(ctx.config)))}</ul></section>
  <p class="links"><a href="${accountUrl(account.did)}">Back to your account</a></p>
</section>`,
  })
}

const row = ({ name, state, text }: Link, remedy: string): Html => html`
<li>
  <div class="body">
    <strong>${sentence(name)}: ${states[state]}</strong>
    <small>${text}</small>
    ${state !== 'ok' && html`<small>What to do: ${remedy}.</small>`}
  </div>
</li>`

const askOperator = ({ contact }: Config): string =>
  `if it stays so, tell the operator of this server${contact.email === null ? '' : ` (${contact.email})`}`

export const networkRoutes: Endpoint[] = [
  // Asks the directory, DNS, relays and the AppView.
  route('GET', PATH, {
    limit: 'accountReach',
    async handler(call) {
      requireNavigation(call)
      const { searchParams } = call.url
      const holder = await holderOf(call, searchParams.get('account'))
      return holder ? networkPage(call, holder) : seeOther(await signInUrl(call, searchParams.get('account')))
    },
  }),
]
