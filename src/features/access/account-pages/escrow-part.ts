/**
 * The part of the identity page about the recovery share that this server holds: how it stands, and what can be done.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { timeInWords } from '../../../base/time-words.ts'
import {
  cancelRelease,
  deleteShare,
  escrowState,
  startRecovery,
  type EscrowState,
} from '../../identity/escrow/escrow.ts'
import { accountForm } from './account-view.ts'
import { day, seeOther } from '../page-parts/page-parts.ts'
import { holderForm, type Holder } from '../pages/pages.ts'

const PATH = 'identity/escrow'

/** Returns null where this server holds no shares at all. */
export const escrowOf = async (ctx: Context, did: Did): Promise<EscrowState | null> =>
  ctx.capabilities.has('escrow') ? escrowState(ctx, ctx.db, did) : null

export function escrowPart(holder: Holder, state: EscrowState): Html {
  return html`
<section class="card" id="escrow">
  <div class="tight">
    <h2>Recovery share</h2>
    <p class="quiet">Your wallet can split its recovery key into three shares, any two of which restore it. This server can keep one for you. On its own, a share is useless.</p>
  </div>
  ${statement(state)}
  ${state.state === 'held' && button(holder, 'start', 'Start recovery', 'Sends a code to your email address. Use this only if you have lost your wallet.')}
  ${(state.state === 'pending' || state.state === 'collectable' || state.state === 'collected') && button(holder, 'cancel', 'Cancel the release', 'The share then cannot be collected until a new code is used.')}
  ${state.state !== 'none' && button(holder, 'delete', 'Delete the share', 'Without it, you need both of your own shares to recover your identity.', 'danger')}
</section>`
}

function statement(state: EscrowState): Html {
  switch (state.state) {
    case 'none':
      return html`<p class="note">This server has no share of your recovery key.</p>`
    case 'held':
      return html`<p class="note good">This server has held a share since ${day(state.since)}.</p>`
    case 'pending':
      return html`<p class="note warn" role="status">Someone requested your share with a code from your email. It can be collected from ${timeInWords(state.until)}. If this was not you, cancel it.</p>`
    case 'collectable':
      return html`<p class="note warn" role="status">Someone requested your share with a code from your email, and it can be collected now. If this was not you, cancel it.</p>`
    case 'collected':
      return html`<p class="note warn" role="status">Your share was handed out on ${timeInWords(state.at)}, and can be collected again for an hour. If this was not you, cancel it, and replace the keys and shares of your identity in your wallet.</p>`
  }
}

const button = (holder: Holder, action: string, label: string, effect: string, look = ''): Html =>
  accountForm(
    holder,
    `${PATH}/${action}`,
    html`<div><button class="small ${look}">${label}</button></div><p class="quiet">${effect}</p>`,
  )

const back = (did: string): Response => seeOther(`/account/identity?${new URLSearchParams({ account: did })}#escrow`)

export const escrowForms: Endpoint[] = [
  // A form's address that a browser opens directly leads to the page.
  route('GET', `/account/${PATH}/:action`, { handler: async ({ url }) => back(url.searchParams.get('account') ?? '') }),
  holderForm(`/account/${PATH}/start`, async (call, holder) => {
    const { did, handle } = holder.account
    const isSent = await startRecovery(call, did)
    return seeOther(
      `/account/recovery/share?${new URLSearchParams({ identifier: handle ?? did, ...(isSent && { sent: 'yes' }) })}`,
    )
  }),
  holderForm(`/account/${PATH}/cancel`, async (call, holder) => {
    await cancelRelease(call, holder.account.did)
    return back(holder.account.did)
  }),
  holderForm(`/account/${PATH}/delete`, async (call, holder) => {
    await deleteShare(call, holder.account.did)
    return back(holder.account.did)
  }),
]
