/**
 * The pages of recovery, for people without a wallet at hand: a code by mail opens the release of the share that this
 * server holds, and after the delay the page shows it. What to do with it is the wallet's part.
 *
 * Every refusal looks the same, as on the routes for wallets.
 */
import { route, type Endpoint } from '../../http/endpoint.ts'
import { html, type Html } from '../../http/html.ts'
import { chargeAddress } from '../../http/limiting.ts'
import { requireMasterKey } from '../../http/master-key.ts'
import { page } from '../../http/page.ts'
import { formatShare } from '../../protocol/escrow-share.ts'
import { inWords } from '../accounts/accounts.ts'
import { releaseShare, requestRecovery, type ReleaseAnswer } from '../escrow/escrow.ts'
import { formProof, readOwnForm, requireNavigation } from './devices.ts'
import { faultAt, faultOf, type Fault } from './faults.ts'
import { codeField, errorNote, field, goodNote, seeOther, type PageCall } from './page-parts.ts'

const PATH = '/account/recovery'

const refused = faultAt('code', 'Recovery is not possible with this. Please check the handle and the code, or ask for a new code.', 401)

function askPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Response {
  return page(call.ctx.config, {
    title: 'Recover your account',
    status: fault?.status,
    body: html`
<form method="post" action="${PATH}" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Recover your account</h1>
    <p class="quiet">You have lost your wallet. This server holds one of three shares of your recovery key. With it and one that you kept, a new wallet takes your account over.</p>
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
    chargeAddress(call, ['recovery'])
    requireMasterKey(call.ctx)
    return requestRecovery(call, identifier)
  })
  if (fault !== null) return askPage(call, form, fault)
  return seeOther(`${PATH}/share?${new URLSearchParams({ identifier, sent: 'yes' })}`)
}

function sharePage(call: PageCall, given: URLSearchParams, fault: Fault | null, answer: ReleaseAnswer | null = null): Response {
  const sent = given.has('sent') ? 'If there is an account of this name, we have sent a code to its email address.' : null
  return page(call.ctx.config, {
    title: 'Your recovery share',
    status: fault?.status,
    body: html`
<form method="post" action="${PATH}/share" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Your recovery share</h1>
    <p class="quiet">${call.ctx.config.recovery.releaseDelaySecs > 0 ? 'The code starts a waiting time, in which you could still stop somebody else who reads your mail. After it, come back to this page without a code.' : 'With the code you get the share at once. Whoever reads your mail can do the same.'}</p>
  </div>
  ${fault === null && answer === null && goodNote(sent)}
  ${errorNote(fault)}
  ${answer && answerPart(answer)}
  ${
    answer?.status !== 'released' &&
    html`
  ${field({ name: 'identifier', label: 'Handle or DID', value: given.get('identifier') ?? '', autocomplete: 'username', required: true, fault })}
  ${codeField({ required: false, maxLength: 100, hint: 'Leave it empty if the waiting time is over.', fault })}
  <div class="actions"><button class="primary">Continue</button></div>`
  }
  <p class="links"><a href="${PATH}">Send another code</a></p>
</form>`,
  })
}

function answerPart(answer: ReleaseAnswer): Html {
  if (answer.status === 'pending')
    return html`<p class="note" role="status">The share can be collected from ${inWords(answer.collectableAt)} on. We have sent an email about this.</p>`
  return html`
<div class="note good" role="status">
  <p>This is the share. Enter it into a wallet together with one of your own shares. It is shown only once, so copy it now:</p>
  <p class="secret">${formatShare(answer.share)}</p>
</div>`
}

async function openOrCollect(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const code = (form.get('code') ?? '').trim()
  let answer: ReleaseAnswer | null = null
  const fault = await faultOf(async () => {
    chargeAddress(call, ['recovery'])
    requireMasterKey(call.ctx)
    answer = await releaseShare(call, identifierOf(form), code === '' ? undefined : code)
  })
  return sharePage(call, form, fault ?? (answer === null ? refused : null), answer)
}

const identifierOf = (form: URLSearchParams): string => (form.get('identifier') ?? '').trim().replace(/^@/, '')

const pageHandler = (show: (call: PageCall, given: URLSearchParams, fault: null) => Response) => async (call: PageCall) => {
  requireNavigation(call)
  return show(call, call.url.searchParams, null)
}

export const recoveryRoutes: Endpoint[] = [
  route('GET', PATH, { capability: 'escrow', handler: pageHandler(askPage) }),
  route('POST', PATH, { capability: 'escrow', handler: ask }),
  route('GET', `${PATH}/share`, { capability: 'escrow', handler: pageHandler(sharePage) }),
  route('POST', `${PATH}/share`, { capability: 'escrow', handler: openOrCollect }),
]
