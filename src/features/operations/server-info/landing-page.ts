/** The page that a browser shows at the server's address. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { layoutTexts } from '../../../http/layout-texts.ts'
import { page, type PageAsker } from '../../../http/page.ts'
import { SOFTWARE } from '../../../base/version.ts'
import { landingTexts as texts } from './landing-texts.ts'

export function landingPage(asker: PageAsker): Promise<Response> {
  const { config } = asker.ctx
  const { host } = new URL(config.publicUrl)
  const facts: [name: Wording, value: Wording | Html][] = [
    [texts.handlesUnder, config.availableUserDomains.map((domain) => `.${domain}`).join(', ')],
    [texts.signUpFact, config.inviteCodeRequired ? texts.withInvite : texts.open],
    [texts.serverDid, html`<code>${config.serverDid}</code>`],
    [texts.software, SOFTWARE],
  ]
  return page(asker, {
    title: host,
    body: html`<section class="card">
<div class="tight"><h1>${host}</h1>
<p>${texts.about({ protocol: (content) => html`<a href="https://atproto.com" rel="noreferrer">${content}</a>` })}</p></div>
<div class="actions two"><a class="button primary" href="/account">${layoutTexts.yourAccount}</a><a class="button" href="/account/sign-up">${texts.signUp}</a></div>
<hr>
<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<p class="quiet">${texts.interface}</p>
</section>`,
  })
}
