/** The page that a browser shows at the server's address. */
import { html, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Context } from '../../../platform/context.ts'
import { SOFTWARE } from '../../../base/version.ts'

export function landingPage({ config }: Context): Response {
  const { host } = new URL(config.publicUrl)
  const facts: [name: string, value: string | Html][] = [
    ['Handles under', config.availableUserDomains.map((domain) => `.${domain}`).join(', ')],
    ['Sign-up', config.inviteCodeRequired ? 'with an invite code' : 'open to everyone'],
    ['Server DID', html`<code>${config.serverDid}</code>`],
    ['Software', SOFTWARE],
  ]
  return page(config, {
    title: host,
    body: html`<section class="card">
<div class="tight"><h1>${host}</h1>
<p>A server for accounts of the <a href="https://atproto.com" rel="noreferrer">AT Protocol</a>, the network of Bluesky and other apps. Your data here belongs to you, and you can move it to another server at any time.</p></div>
<div class="actions two"><a class="button primary" href="/account">Your account</a><a class="button" href="/account/sign-up">Sign up</a></div>
<hr>
<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<p class="quiet">The interface for apps is under <code>/xrpc/</code>.</p>
</section>`,
  })
}
