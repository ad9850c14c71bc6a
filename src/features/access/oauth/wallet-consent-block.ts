/** The part of the authorization page for wallets: what to scan, tap or type, and the state of the request. */
import { asset } from '../../../http/asset.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { hidden, qrCode } from '../page-parts/page-parts.ts'
import { consentTexts as texts } from './consent-texts.ts'
import type { Consent } from './wallet-consent-store.ts'
import script from './wallet-consent.js' with { type: 'text' }

export const waitScript = asset('/assets/wallet-consent.js', 'text/javascript', script)

/** What follows an approval. */
export interface Completion {
  /** The address to which the form is sent. */
  action: string
  /** The label of its button. */
  label: Wording
  /** Further fields of the form. */
  fields?: Html
  /** Another button beside its own. */
  beside?: Html
}

/** Wallets in browsers, and the script of the page, read the ids and classes. */
export function walletBlock(consent: Consent, { action, label, fields, beside }: Completion): Html {
  const { requestId, userCode, matchCode, status } = consent
  const link = walletLink(consent)
  const isApproved = status === 'approved'
  return html`
<div id="wallet-path">
  <div class="stack">
    <p class="quiet">${texts.scan}</p>
    ${matchCode !== null && html`<div class="note match"><p>${texts.match}</p><div class="match-code mono" id="match-code">${matchCode}</div></div>`}
    <div class="scan">
      ${qrCode(link, texts.qrCode)}
      <div class="stack">
        <div class="user-code mono">${userCode}</div>
        <a class="button" href="${link}">${texts.openWallet}</a>
      </div>
    </div>
    <p class="note" id="wallet-status" role="status" data-request-id="${requestId}" data-status="${status}" data-approved="${texts.nowApproved}" data-denied="${texts.nowDenied}" data-expired="${texts.nowExpired}" data-completed="${texts.nowCompleted}">${isApproved ? texts.approved : texts.waiting}</p>
    <form id="wallet-complete" class="stack" method="post" action="${action}">
      ${hidden({ request_id: requestId })}
      ${fields}
      <div class="decision"><button${isApproved && html` class="primary"`}>${label}</button>${beside}</div>
    </form>
  </div>
</div>`
}

/** The link that opens a wallet. The QR code contains it too. */
function walletLink({ requestId, webOrigin }: Pick<Consent, 'requestId' | 'webOrigin'>): string {
  const origin = webOrigin === null ? '' : `&origin=${encodeURIComponent(webOrigin)}`
  return `obsign:/consent?request_id=${encodeURIComponent(requestId)}${origin}`
}
