/**
 * The pages of recovery, for people without a wallet at hand: a code by mail opens the release of the share that this
 * server holds, and after the delay the page shows it. The wallet knows what to do with the share.
 *
 * Every refusal looks the same, as on the routes for wallets.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import { timePhrase } from '../../../http/texts.ts'
import { formatShare } from '../../../protocol/escrow-share.ts'
import { releaseShare, requestRecovery, type ReleaseAnswer } from '../../identity/escrow/escrow.ts'
import { codeField, faultAt, faultOf, field, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { formPage, formRoutes } from './form-page.ts'
import { recoveryTexts as texts } from './recovery-texts.ts'

const PATH = '/account/recovery'

const refused = faultAt('code', texts.wrong, 401)

const identifierPart = (given: URLSearchParams, fault: Fault | null, autofocus = false): Html =>
  field({
    name: 'identifier',
    label: texts.identifier,
    value: given.get('identifier') ?? '',
    autocomplete: 'username',
    required: true,
    autofocus,
    fault,
  })

const askPage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> =>
  formPage(call, {
    title: texts.title,
    lead: texts.lead,
    action: PATH,
    fault,
    fields: identifierPart(given, fault, true),
    submit: texts.send,
    links: html`<a href="${PATH}/share">${texts.haveCode}</a>`,
  })

async function ask(call: PageCall, form: URLSearchParams): Promise<Response> {
  const identifier = identifierOf(form)
  const fault = await faultOf(async () => {
    await charge(call, 'recovery')
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
): Promise<Response> {
  const isReleased = answer?.status === 'released'
  const isSent = answer === null && given.has('sent')
  return formPage(call, {
    title: texts.shareTitle,
    lead: call.ctx.config.recovery.releaseDelaySecs > 0 ? texts.afterWait : texts.atOnce,
    action: `${PATH}/share`,
    notice: isSent ? texts.sent : null,
    fault,
    fields: html`${answer && answerPart(answer)}${!isReleased && shareFields(given, fault)}`,
    submit: isReleased ? null : texts.continue,
    links: html`<a href="${PATH}">${texts.sendAnother}</a>`,
  })
}

const shareFields = (given: URLSearchParams, fault: Fault | null): Html => html`
${identifierPart(given, fault)}
${codeField({ required: false, maxLength: 100, hint: texts.codeHint, fault })}`

function answerPart(answer: ReleaseAnswer): Html {
  if (answer.status === 'pending')
    return html`<p class="note" role="status">${texts.pending({ time: timePhrase(answer.collectableAt) })}</p>`
  return html`
<div class="note good" role="status">
  <p>${texts.released}</p>
  <p class="secret">${formatShare(answer.share)}</p>
</div>`
}

async function openOrCollect(call: PageCall, form: URLSearchParams): Promise<Response> {
  const code = (form.get('code') ?? '').trim()
  let answer: ReleaseAnswer | null = null
  const fault = await faultOf(async () => {
    await charge(call, 'recovery')
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
