/**
 * Pages with a single form, for people who are not signed in: what it is for, its fields, its button and further links.
 * Also the addresses of forms on other pages.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { CapabilityName } from '../../../platform/configuration/capabilities.ts'
import { errorNote, goodNote, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { formProof, holderUrl, readOwnForm, requireNavigation } from '../pages/pages.ts'

export interface FormPage {
  title: Wording
  /** Below the title: what the form is for. */
  lead: Wording
  /** The address to which the form is sent. */
  action: string
  /** What the previous step did; not shown if there is a fault. */
  notice?: Wording | null
  fault: Fault | null
  fields: Html
  /** The label of the button; null if there is nothing to send. */
  submit: Wording | null
  links: Html
  script?: string
}

export const formPage = (
  call: PageCall,
  { title, lead, action, notice = null, fault, fields, submit, links, script }: FormPage,
): Promise<Response> =>
  page(call, {
    title,
    status: fault?.status,
    script,
    body: html`
<form method="post" action="${action}" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>${title}</h1>
    <p class="quiet">${lead}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  ${fields}
  ${submit !== null && html`<div class="actions"><button class="primary">${submit}</button></div>`}
  <p class="links">${links}</p>
</form>`,
  })

interface FormHandlers {
  capability?: CapabilityName
  /** Shows the page, with the values in its address, or with the form that was sent and its fault. */
  show: (call: PageCall, given: URLSearchParams, fault: Fault | null) => Response | Promise<Response>
  /** Handles a form that was sent from a page of ours. */
  send: (call: PageCall, form: URLSearchParams) => Promise<Response>
}

/**
 * Declare what a browser gets that opens the address of a form directly (Enter in the address bar, a restored tab): it
 * is redirected to the page of the form, which is for account holders.
 */
export const formAddress = (path: string, page: string): Endpoint =>
  route('GET', path, { handler: async ({ url }) => seeOther(holderUrl(page, url.searchParams.get('account'))) })

/** Declare a page that opens in a tab, and the form that it sends to its own address. */
export const formRoutes = (path: string, { capability, show, send }: FormHandlers): Endpoint[] => [
  route('GET', path, {
    capability,
    async handler(call) {
      requireNavigation(call)
      return show(call, call.url.searchParams, null)
    },
  }),
  route('POST', path, { capability, handler: async (call) => send(call, await readOwnForm(call)) }),
]
