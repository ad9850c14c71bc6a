/**
 * The page for a domain of the account holder's own as a handle. It shows what to publish, checks whether that is
 * published, and then changes the handle.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { clockPhrase } from '../../../http/texts.ts'
import { parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { changeHandle } from '../../identity/handles/handles.ts'
import { publishedDids, type PublishedDids } from '../../identity/identity/identity.ts'
import { accountForm, accountUrl } from './account-view.ts'
import { domainTexts as texts } from './domain-texts.ts'
import {
  accountName,
  errorNote,
  faultOf,
  hidden,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, provenForm, type Holder } from '../pages/pages.ts'

const PATH = '/account/handle/domain'
/** Type of the DNS record that names the account. */
const RECORD_TYPE = 'TXT'

export const ownDomainUrl = (did: Did, handle: Handle): string => holderUrl(PATH, did, { handle })

/** The result of checking the domain. */
interface Check {
  at: Millis
  published: PublishedDids
}

function ownDomainPage(
  call: PageCall,
  holder: Holder,
  handle: Handle,
  { check = null, fault = null }: { check?: Check | null; fault?: Fault | null } = {},
): Promise<Response> {
  const { did } = holder.account
  return page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.heading({ handle })}</h1>
    <p>${texts.lead}</p>
  </div>
  ${errorNote(fault)}
  ${check && findings(check, did)}
  <section class="stack">
    <h2>${texts.record}</h2>
    <p class="quiet">${texts.recordLead}</p>
    <dl class="facts">
      <div><dt>${texts.name}</dt><dd class="copy">${`_atproto.${handle}`}</dd></div>
      <div><dt>${texts.type}</dt><dd>${RECORD_TYPE}</dd></div>
      <div><dt>${texts.value}</dt><dd class="copy">${`did=${did}`}</dd></div>
    </dl>
  </section>
  <hr>
  <section class="stack">
    <h2>${texts.file}</h2>
    <p class="quiet">${texts.fileLead}</p>
    <dl class="facts">
      <div><dt>${texts.address}</dt><dd class="copy">${`https://${handle}/.well-known/atproto-did`}</dd></div>
      <div><dt>${texts.content}</dt><dd class="copy">${did}</dd></div>
    </dl>
  </section>
  ${accountForm(
    holder,
    'handle/domain',
    html`
  ${hidden({ handle })}
  <div class="actions"><button class="primary">${texts.check}</button></div>
  <p class="quiet">${texts.checkMeans({ from: accountName(holder.account), to: handle })}</p>`,
    { handle },
  )}
  <p class="links"><a href="${accountUrl(did)}#handle">${texts.back}</a></p>
</section>`,
  })
}

/** Shows what was found and what was not. A DNS record takes precedence over a file. */
function findings({ at, published: { dns, web } }: Check, did: Did): Html {
  return html`
<div class="note warn" role="status">
  <p>${texts.checkedAt({ time: clockPhrase(at) })}</p>
  <ul class="findings">
    <li>${finding(dns, did, [texts.recordMissing, texts.recordRight, texts.recordOther])}</li>
    <li>${finding(web, did, [texts.fileMissing, texts.fileRight, texts.fileOther])}</li>
    ${dns !== null && dns !== did && web === did && html`<li>${texts.recordFirst}</li>`}
  </ul>
</div>`
}

/** The words for a finding: nothing, the account itself, or another account. */
type FindingWords = readonly [missing: Phrase, right: Phrase, other: (values: { did: string }) => Phrase]

function finding(found: Did | null, did: Did, [missing, right, other]: FindingWords): Phrase {
  if (found === null) return missing
  return found === did ? right : other({ did: found })
}

export const ownDomainRoutes: Endpoint[] = [
  holderPage(PATH, async (call, holder) => {
    const handle = parseHandle(call.url.searchParams.get('handle') ?? '')
    return handle ? ownDomainPage(call, holder, handle) : seeOther('/account#handle')
  }),
  provenForm(PATH, async (call, holder, form) => {
    const { ctx } = call
    const { did } = holder.account
    const handle = parseHandle(form.get('handle') ?? '')
    if (!handle) return seeOther('/account#handle')
    let check: Check | null = null
    const fault = await faultOf(async () => {
      await charge(call, 'updateHandle')
      const published = await publishedDids(ctx, handle)
      if ((published.dns ?? published.web) !== did) check = { at: ctx.clock.now(), published }
      else await changeHandle(call, did, handle)
    })
    if (fault || check) return ownDomainPage(call, holder, handle, { check, fault })
    return seeOther(holderUrl('/account#handle', did, { done: 'handle' }))
  }),
]
