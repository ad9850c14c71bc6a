/**
 * The part of the identity page about the recovery share that this server holds: its state, and what the holder can do
 * with it.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { timePhrase } from '../../../http/texts.ts'
import {
  cancelRelease,
  deleteShare,
  escrowState,
  startRecovery,
  type EscrowState,
} from '../../identity/escrow/escrow.ts'
import { accountForm } from './account-view.ts'
import { formAddress } from './form-page.ts'
import { identityTexts as texts } from './identity-texts.ts'
import { day, seeOther } from '../page-parts/page-parts.ts'
import { holderForm, holderUrl, provenForm, type Holder } from '../pages/pages.ts'

const PATH = 'identity/escrow'

/** Returns null if this server holds no shares at all. */
export const escrowOf = async (ctx: Context, did: Did): Promise<EscrowState | null> =>
  ctx.capabilities.has('escrow') ? escrowState(ctx, ctx.db, did) : null

export function escrowPart(holder: Holder, state: EscrowState): Html {
  return html`
<section class="card" id="escrow">
  <div class="tight">
    <h2>${texts.share}</h2>
    <p class="quiet">${texts.shareLead}</p>
  </div>
  ${statement(state)}
  ${state.state === 'held' && button(holder, 'start', texts.startRecovery, texts.startEffect)}
  ${(state.state === 'pending' || state.state === 'collectable' || state.state === 'collected') && button(holder, 'cancel', texts.cancelRelease, texts.cancelEffect)}
  ${state.state !== 'none' && button(holder, 'delete', texts.deleteShare, texts.deleteEffect, 'danger')}
</section>`
}

function statement(state: EscrowState): Html {
  switch (state.state) {
    case 'none':
      return html`<p class="note">${texts.shareNone}</p>`
    case 'held':
      return html`<p class="note good">${texts.shareHeld({ day: day(state.since) })}</p>`
    case 'pending':
      return html`<p class="note warn" role="status">${texts.sharePending({ time: timePhrase(state.until) })}</p>`
    case 'collectable':
      return html`<p class="note warn" role="status">${texts.shareCollectable}</p>`
    case 'collected':
      return html`<p class="note warn" role="status">${texts.shareCollected({ time: timePhrase(state.at) })}</p>`
  }
}

const button = (holder: Holder, action: string, label: Phrase, effect: Phrase, look = ''): Html =>
  accountForm(
    holder,
    `${PATH}/${action}`,
    html`<div><button class="small ${look}">${label}</button></div><p class="quiet">${effect}</p>`,
  )

const PLACE = '/account/identity#escrow'
const back = (did: string): Response => seeOther(holderUrl(PLACE, did))

export const escrowForms: Endpoint[] = [
  formAddress(`/account/${PATH}/:action`, PLACE),
  holderForm(`/account/${PATH}/start`, async (call, holder) => {
    const { did, handle } = holder.account
    const isSent = await startRecovery(call, did)
    return seeOther(
      `/account/recovery/share?${new URLSearchParams({ identifier: handle ?? did, ...(isSent && { sent: 'yes' }) })}`,
    )
  }),
  // Ask for proof: if the share is deleted, or every release cancelled, a holder who has lost the wallet has lost the
  // identity.
  provenForm(`/account/${PATH}/cancel`, async (call, holder) => {
    await cancelRelease(call, holder.account.did)
    return back(holder.account.did)
  }),
  provenForm(`/account/${PATH}/delete`, async (call, holder) => {
    await deleteShare(call, holder.account.did)
    return back(holder.account.did)
  }),
]
