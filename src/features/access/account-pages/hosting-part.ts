/**
 * The part of the identity page about the document of a did:web: whether this server serves it, and otherwise what the
 * holder has to publish.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { endHosting, startHosting, whatToPublish } from '../../identity/web-documents/web-documents.ts'
import { accountForm } from './account-view.ts'
import { formAddress } from './form-page.ts'
import { identityTexts as texts } from './identity-texts.ts'
import { errorNote, faultOf, hidden, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { holderUrl, provenForm, type Holder } from '../pages/pages.ts'

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
    <h2>${texts.document}</h2>
    <p class="quiet">${texts.documentLead}</p>
  </div>
  ${errorNote(fault)}
  ${
    hosted
      ? html`<p class="note good">${texts.servedHere({ host })}</p>`
      : html`<p class="note">${texts.servedElsewhere}</p>`
  }
  ${accountForm(
    holder,
    PATH,
    hosted
      ? html`${hidden({ enabled: 'no' })}<div><button class="small">${texts.serveMyself}</button></div>
  <p class="quiet">${texts.serveMyselfEffect}</p>`
      : html`${hidden({ enabled: 'yes' })}<div><button class="small">${texts.letServe({ host })}</button></div>
  <p class="quiet">${texts.letServeEffect({ host })}</p>`,
  )}
  <details>
    <summary>${texts.whatToPublish}</summary>
    ${publish.map(
      ({ url, contentType, content }) => html`
    <dl class="facts">
      <div><dt>${texts.address}</dt><dd class="copy">${url}</dd></div>
      <div><dt>${texts.type}</dt><dd>${contentType}</dd></div>
      <div><dt>${texts.content}</dt><dd class="copy">${content}</dd></div>
    </dl>`,
    )}
  </details>
</section>`

const PLACE = '/account/identity#hosting'
const back = (did: string): Response => seeOther(holderUrl(PLACE, did))

/** `show` renders the identity page with the fault of this part. */
export const hostingForms = (show: (call: PageCall, holder: Holder, fault: Fault) => Promise<Response>): Endpoint[] => [
  formAddress(`/account/${PATH}`, PLACE),
  // Ask for proof: keys in a document that is served here cannot open sessions, and without a document the identity
  // does not resolve.
  provenForm(`/account/${PATH}`, async (call, holder, form) => {
    const { did } = holder.account
    const fault = await faultOf(() => (form.get('enabled') === 'yes' ? startHosting(call, did) : endHosting(call, did)))
    return fault === null ? back(did) : show(call, holder, fault)
  }),
]
