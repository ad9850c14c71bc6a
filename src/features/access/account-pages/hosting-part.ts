/**
 * The part of the identity page about the document of a did:web: whether this server serves it, and what to publish
 * oneself.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { endHosting, startHosting, whatToPublish } from '../../identity/web-documents/web-documents.ts'
import { accountForm } from './account-view.ts'
import { errorNote, faultOf, hidden, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { holderForm, type Holder } from '../pages/pages.ts'

type Published = NonNullable<Awaited<ReturnType<typeof whatToPublish>>>

const PATH = 'identity/hosting'

/** Returns null unless the account is a did:web whose document is stored here. */
export const hostingOf = (ctx: Context, did: Did): Promise<Published | null> =>
  did.startsWith('did:web:') ? whatToPublish(ctx, did) : Promise.resolve(null)

export const hostingPart = (
  holder: Holder,
  { hosted, publish }: Published,
  host: string,
  fault: Fault | null,
): Html => html`
<section class="card" id="hosting">
  <div class="tight">
    <h2>Document of your identity</h2>
    <p class="quiet">It names the server of your account and the key that signs your posts. Others read it at your own domain.</p>
  </div>
  ${errorNote(fault)}
  ${
    hosted
      ? html`<p class="note good">Served by ${host}, as long as your domain points there.</p>`
      : html`<p class="note">Served by your own web server.</p>`
  }
  ${accountForm(
    holder,
    PATH,
    hosted
      ? html`${hidden({ enabled: 'no' })}<div><button class="small">Serve it myself</button></div>
  <p class="quiet">Publish the content below first, or others cannot find your account.</p>`
      : html`${hidden({ enabled: 'yes' })}<div><button class="small">Let ${host} serve it</button></div>
  <p class="quiet">Your domain must then point to ${host}. Any session of your account can change the document, so your wallet cannot open new sessions during that time.</p>`,
  )}
  <details>
    <summary>What to publish on your own web server</summary>
    ${publish.map(
      ({ url, contentType, content }) => html`
    <dl class="facts">
      <div><dt>Address</dt><dd class="copy">${url}</dd></div>
      <div><dt>Type</dt><dd>${contentType}</dd></div>
      <div><dt>Content</dt><dd class="copy">${content}</dd></div>
    </dl>`,
    )}
  </details>
</section>`

const back = (did: string): Response => seeOther(`/account/identity?${new URLSearchParams({ account: did })}#hosting`)

/** `show` renders the identity page with the fault of this part. */
export const hostingForms = (show: (call: PageCall, holder: Holder, fault: Fault) => Promise<Response>): Endpoint[] => [
  // A form's address that a browser opens directly leads to the page.
  route('GET', `/account/${PATH}`, { handler: async ({ url }) => back(url.searchParams.get('account') ?? '') }),
  holderForm(`/account/${PATH}`, async (call, holder, form) => {
    const { did } = holder.account
    const fault = await faultOf(() => (form.get('enabled') === 'yes' ? startHosting(call, did) : endHosting(call, did)))
    return fault === null ? back(did) : show(call, holder, fault)
  }),
]
