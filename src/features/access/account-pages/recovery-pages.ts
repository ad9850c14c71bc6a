/**
 * The pages of recovery, for people without a wallet at hand: a code by mail opens the release of the share that this
 * server holds, and after the delay the page shows it. What to do with it is the wallet's part.
 *
 * Every refusal looks the same, as on the routes for wallets.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import { formatShare } from '../../../protocol/escrow-share.ts'
import { timeInWords } from '../../../base/time-words.ts'
import { releaseShare, requestRecovery, type ReleaseAnswer } from '../../identity/escrow/escrow.ts'
import { codeField, faultAt, faultOf, field, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { formPage, formRoutes } from './form-page.ts'

const PATH = '/account/recovery'

const refused = faultAt('code', 'The handle or the code is wrong. Please check both, or request a new code.', 401)

const identifierPart = (given: URLSearchParams, fault: Fault | null, autofocus = false): Html =>
  field({
    name: 'identifier',
    label: 'Handle or DID',
    value: given.get('identifier') ?? '',
    autocomplete: 'username',
    required: true,
    autofocus,
    fault,
  })

const askPage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> =>
  formPage(call, {
    title: 'Recover your account',
    lead: 'If you have lost your wallet: this server holds one of the three shares of your recovery key. With it and one of your own shares, a new wallet can take over your account.',
    action: PATH,
    fault,
    fields: identifierPart(given, fault, true),
    submit: 'Send a code to my email address',
    links: html`<a href="${PATH}/share">I already have a code</a>`,
  })

async function ask(call: PageCall, form: URLSearchParams): Promise<Response> {
  const identifier = identifierOf(form)
  const fault = await faultOf(() => {
    charge(call, 'recovery')
    requireMasterKey(call.ctx)
    return requestRecovery(call, identifier)
  })
  if (fault !== null) return askPage(call, form, fault)
  return seeOther(`${PATH}/share?${new URLSearchParams({ identifier, sent: 'yes' })}`)
}

const AFTER_A_WAIT =
  'The code starts a waiting period. During it you can cancel, in case someone else is reading your email. Afterwards, come back to this page without a code.'
const AT_ONCE = 'With the code you get the share at once. Anyone who reads your email can do the same.'

function sharePage(
  call: PageCall,
  given: URLSearchParams,
  fault: Fault | null,
  answer: ReleaseAnswer | null = null,
): Promise<Response> {
  const isReleased = answer?.status === 'released'
  const isSent = answer === null && given.has('sent')
  return formPage(call, {
    title: 'Your recovery share',
    lead: call.ctx.config.recovery.releaseDelaySecs > 0 ? AFTER_A_WAIT : AT_ONCE,
    action: `${PATH}/share`,
    notice: isSent ? 'If this account exists, we have sent a code to its email address.' : null,
    fault,
    fields: html`${answer && answerPart(answer)}${!isReleased && shareFields(given, fault)}`,
    submit: isReleased ? null : 'Continue',
    links: html`<a href="${PATH}">Send another code</a>`,
  })
}

const shareFields = (given: URLSearchParams, fault: Fault | null): Html => html`
${identifierPart(given, fault)}
${codeField({ required: false, maxLength: 100, hint: 'After the waiting period, you need it only if a wallet started the recovery.', fault })}`

function answerPart(answer: ReleaseAnswer): Html {
  if (answer.status === 'pending')
    return html`<p class="note" role="status">You can collect the share from ${timeInWords(answer.collectableAt)}. We have sent an email about this.</p>`
  return html`
<div class="note good" role="status">
  <p>This is the share. Enter it into a wallet together with one of your own shares. You can view it again for an hour, so copy it now:</p>
  <p class="secret">${formatShare(answer.share)}</p>
</div>`
}

async function openOrCollect(call: PageCall, form: URLSearchParams): Promise<Response> {
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

export const recoveryRoutes: Endpoint[] = [
  ...formRoutes(PATH, { capability: 'escrow', show: askPage, send: ask }),
  ...formRoutes(`${PATH}/share`, { capability: 'escrow', show: sharePage, send: openOrCollect }),
]
