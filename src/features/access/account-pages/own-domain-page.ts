/**
 * The page for a domain of the account holder's own as a handle. It shows what to publish, checks whether that is
 * published, and then changes the handle.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { changeHandle } from '../../identity/handles/handles.ts'
import { publishedDids, type PublishedDids } from '../../identity/identity/identity.ts'
import { accountForm, accountName, accountUrl } from './account-view.ts'
import { errorNote, faultOf, hidden, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { holderForm, holderOf, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/handle/domain'

export const ownDomainUrl = (did: Did, handle: Handle): string =>
  `${PATH}?${new URLSearchParams({ account: did, handle })}`

/** The result of checking the domain. */
interface Check {
  at: Millis
  published: PublishedDids
}

function ownDomainPage(
  { ctx }: PageCall,
  holder: Holder,
  handle: Handle,
  { check = null, fault = null }: { check?: Check | null; fault?: Fault | null } = {},
): Response {
  const { did } = holder.account
  return page(ctx.config, {
    title: 'Your own domain',
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Use @${handle}</h1>
    <p>To prove that you control this domain, publish <strong>one</strong> of the two below, then check.</p>
  </div>
  ${errorNote(fault)}
  ${check && findings(check, did)}
  <section class="stack">
    <h2>A DNS record</h2>
    <p class="quiet">Add this record where you manage the domain. Some providers expect the name without the domain, such as <code>_atproto</code>.</p>
    <dl class="facts">
      <div><dt>Name</dt><dd class="copy">_atproto.${handle}</dd></div>
      <div><dt>Type</dt><dd>TXT</dd></div>
      <div><dt>Value</dt><dd class="copy">did=${did}</dd></div>
    </dl>
  </section>
  <hr>
  <section class="stack">
    <h2>Or a file on its website</h2>
    <p class="quiet">Plain text, with this one line.</p>
    <dl class="facts">
      <div><dt>Address</dt><dd class="copy">https://${handle}/.well-known/atproto-did</dd></div>
      <div><dt>Content</dt><dd class="copy">${did}</dd></div>
    </dl>
  </section>
  ${accountForm(
    holder,
    'handle/domain',
    html`
  ${hidden({ handle })}
  <div class="actions"><button class="primary">Check and change my handle</button></div>
  <p class="quiet">Each check looks up the domain again. If it finds the record or the file, your handle changes from ${accountName(holder.account)} to @${handle} at once.</p>`,
    { handle },
  )}
  <p class="links"><a href="${accountUrl(did)}#handle">Back to your account</a></p>
</section>`,
  })
}

const times = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: 'UTC' })

/** Shows what was found and what was not. A DNS record takes precedence over a file. */
function findings({ at, published: { dns, web } }: Check, did: Did): Html {
  return html`
<div class="note warn" role="status">
  <p>Checked at ${times.format(at)} UTC:</p>
  <ul class="findings">
    <li><strong>DNS record:</strong> ${finding(dns, did, 'A new record can take some minutes to become visible everywhere.')}</li>
    <li><strong>File:</strong> ${finding(web, did, 'It must be reachable over https without signing in.')}</li>
    ${dns !== null && dns !== did && web === did && html`<li>The record takes precedence over the file. Correct it or remove it.</li>`}
  </ul>
</div>`
}

function finding(found: Did | null, did: Did, advice: string): Html {
  if (found === null) return html`not found. ${advice}`
  return found === did ? html`found and correct.` : html`found, but it names another account, <code>${found}</code>.`
}

export const ownDomainRoutes: Endpoint[] = [
  route('GET', PATH, {
    async handler(call) {
      requireNavigation(call)
      const { searchParams } = call.url
      const holder = await holderOf(call, searchParams.get('account'))
      if (!holder) return seeOther(await signInUrl(call, searchParams.get('account')))
      const handle = parseHandle(searchParams.get('handle') ?? '')
      return handle ? ownDomainPage(call, holder, handle) : seeOther('/account#handle')
    },
  }),
  holderForm(PATH, async (call, holder, form) => {
    const { ctx } = call
    const { did } = holder.account
    const handle = parseHandle(form.get('handle') ?? '')
    if (!handle) return seeOther('/account#handle')
    let check: Check | null = null
    const fault = await faultOf(async () => {
      charge(call, 'updateHandle')
      const published = await publishedDids(ctx, handle)
      if ((published.dns ?? published.web) !== did) check = { at: ctx.clock.now(), published }
      else await changeHandle(call, did, handle)
    })
    if (fault || check) return ownDomainPage(call, holder, handle, { check, fault })
    return seeOther(`/account?${new URLSearchParams({ account: did, done: 'handle' })}#handle`)
  }),
]
