/**
 * The pages of recovery, for people without a wallet at hand: a code by mail opens the release of the share that this
 * server holds, and after the delay the page shows it. What to do with it is the wallet's part.
 *
 * Every refusal looks the same, as on the routes for wallets.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requireMasterKey } from '../../../http/master-key.ts'
import { page } from '../../../http/page.ts'
import { formatShare } from '../../../protocol/escrow-share.ts'
import { timeInWords } from '../../../base/time-words.ts'
import { releaseShare, requestRecovery, type ReleaseAnswer } from '../../identity/escrow/escrow.ts'
import {
  codeField,
  errorNote,
  faultAt,
  faultOf,
  field,
  goodNote,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { formProof, readOwnForm, requireNavigation } from '../pages/pages.ts'

const PATH = '/account/recovery'

const refused = faultAt('code', 'The handle or the code is wrong. Please check both, or request a new code.', 401)

function askPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Response {
  return page(call.ctx.config, {
    title: 'Recover your account',
    status: fault?.status,
    body: html`
<form method="post" action="${PATH}" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Recover your account</h1>
    <p class="quiet">If you have lost your wallet: this server holds one of the three shares of your recovery key. With it and one of your own shares, a new wallet can take over your account.</p>
  </div>
  ${errorNote(fault)}
  ${field({ name: 'identifier', label: 'Handle or DID', value: given.get('identifier') ?? '', autocomplete: 'username', required: true, autofocus: true, fault })}
  <div class="actions"><button class="primary">Send a code to my email address</button></div>
  <p class="links"><a href="${PATH}/share">I already have a code</a></p>
</form>`,
  })
}

async function ask(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const identifier = identifierOf(form)
  const fault = await faultOf(() => {
    charge(call, 'recovery')
    requireMasterKey(call.ctx)
    return requestRecovery(call, identifier)
  })
  if (fault !== null) return askPage(call, form, fault)
  return seeOther(`${PATH}/share?${new URLSearchParams({ identifier, sent: 'yes' })}`)
}

function sharePage(
  call: PageCall,
  given: URLSearchParams,
  fault: Fault | null,
  answer: ReleaseAnswer | null = null,
): Response {
  const sent = given.has('sent') ? 'If this account exists, we have sent a code to its email address.' : null
  return page(call.ctx.config, {
    title: 'Your recovery share',
    status: fault?.status,
    body: html`
<form method="post" action="${PATH}/share" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Your recovery share</h1>
    <p class="quiet">${call.ctx.config.recovery.releaseDelaySecs > 0 ? 'The code starts a waiting period. During it you can cancel, in case someone else is reading your email. Afterwards, come back to this page without a code.' : 'With the code you get the share at once. Anyone who reads your email can do the same.'}</p>
  </div>
  ${fault === null && answer === null && goodNote(sent)}
  ${errorNote(fault)}
  ${answer && answerPart(answer)}
  ${
    answer?.status !== 'released' &&
    html`
  ${field({ name: 'identifier', label: 'Handle or DID', value: given.get('identifier') ?? '', autocomplete: 'username', required: true, fault })}
  ${codeField({ required: false, maxLength: 100, hint: 'After the waiting period, you need it only if a wallet started the recovery.', fault })}
  <div class="actions"><button class="primary">Continue</button></div>`
  }
  <p class="links"><a href="${PATH}">Send another code</a></p>
</form>`,
  })
}

function answerPart(answer: ReleaseAnswer): Html {
  if (answer.status === 'pending')
    return html`<p class="note" role="status">You can collect the share from ${timeInWords(answer.collectableAt)}. We have sent an email about this.</p>`
  return html`
<div class="note good" role="status">
  <p>This is the share. Enter it into a wallet together with one of your own shares. You can view it again for an hour, so copy it now:</p>
  <p class="secret">${formatShare(answer.share)}</p>
</div>`
}

async function openOrCollect(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const code = (form.get('code') ?? '').trim()
  let answer: ReleaseAnswer | null = null
  const fault = await faultOf(async () => {
    charge(call, 'recovery')
    requireMasterKey(call.ctx)
    answer = await releaseShare(call, { identifier: identifierOf(form), code: code === '' ? undefined : code })
  })
  return sharePage(call, form, fault ?? (answer === null ? refused : null), answer)
}

const identifierOf = (form: URLSearchParams): string => (form.get('identifier') ?? '').trim().replace(/^@/, '')

const pageHandler =
  (show: (call: PageCall, given: URLSearchParams, fault: null) => Response) => async (call: PageCall) => {
    requireNavigation(call)
    return show(call, call.url.searchParams, null)
  }

export const recoveryRoutes: Endpoint[] = [
  route('GET', PATH, { capability: 'escrow', handler: pageHandler(askPage) }),
  route('POST', PATH, { capability: 'escrow', handler: ask }),
  route('GET', `${PATH}/share`, { capability: 'escrow', handler: pageHandler(sharePage) }),
  route('POST', `${PATH}/share`, { capability: 'escrow', handler: openOrCollect }),
]
