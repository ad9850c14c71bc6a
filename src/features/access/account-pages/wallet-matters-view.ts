/**
 * The part of the account page about the holder's wallet: requests that wait for it, a transfer to another device, and
 * the devices that hold a token. Accounts without any of these do not see it.
 */
import { html, type Html } from '../../../http/html.ts'
import { programPhrase } from '../../../http/program-words.ts'
import type { Context } from '../../../platform/context.ts'
import { networkOf } from '../../../protocol/ip-address.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { timePhrase } from '../../../http/texts.ts'
import { appName, consentsAwaiting, type Consent } from '../oauth/oauth.ts'
import { runningTransfer, type Transfer } from '../../identity/transfers/transfers.ts'
import { devicesOf, type Device } from '../wallet-devices/wallet-devices.ts'
import { accountForm, outcomeOf, type AccountView, type WalletMatters } from './account-view.ts'
import { day, hidden } from '../page-parts/page-parts.ts'
import { walletMattersTexts as texts } from './wallet-matters-texts.ts'

/** Only active accounts see requests, because only they can answer them. */
export async function walletMatters(ctx: Context, account: Account): Promise<WalletMatters> {
  const [consents, transfer, devices] = await Promise.all([
    activityOf(account).active ? consentsAwaiting(ctx, account) : [],
    runningTransfer(ctx, account.did),
    devicesOf(ctx.db, account.did),
  ])
  return { consents, transfer, devices }
}

export function walletPart(view: AccountView, publicUrl: string): Html | null {
  const { consents, transfer, devices } = view.wallet
  const outcome = outcomeOf(view, 'wallet')
  if (consents.length === 0 && transfer === null && devices.length === 0 && outcome === null) return null
  return html`
<section class="card" id="wallet">
  <h2>${texts.title}</h2>
  ${outcome}
  ${
    consents.length > 0 &&
    html`
  <div class="stack">
    <h3>${texts.waiting}</h3>
    <p class="quiet">${texts.waitingLead}</p>
    <ul class="list">${consents.map((consent) => consentRow(view, consent, publicUrl))}</ul>
  </div>`
  }
  ${transfer && transferNote(view, transfer)}
  ${
    devices.length > 0 &&
    html`
  <div class="stack">
    <h3>${texts.devices}</h3>
    <p class="quiet">${texts.devicesLead}</p>
    <ul class="list">${devices.map((device) => deviceRow(view, device))}</ul>
  </div>`
  }
</section>`
}

function consentRow(
  view: AccountView,
  { requestId, clientId, userCode, webOrigin, ip, openedWith, createdAt }: Consent,
  publicUrl: string,
): Html {
  const name = clientId === publicUrl ? texts.thisPage : appName(clientId)
  const network = networkOf(ip)
  return html`
<li>
  <div class="body">
    <strong>${texts.signIn({ name })}</strong>
    <small>${texts.since({ time: timePhrase(createdAt) })}</small>
    ${openedWith !== null && html`<small>${texts.with({ program: programPhrase(openedWith) })}</small>`}
    ${network !== null && html`<small>${texts.network({ network })}</small>`}
    ${webOrigin !== null && webOrigin !== publicUrl && html`<small>${texts.begunOn({ origin: webOrigin })}</small>`}
    <small>${texts.code({ code: html`<span class="whole">${userCode}</span>` })}</small>
  </div>
  ${accountForm(view, 'wallet/requests', html`${hidden({ id: requestId })}<button class="small danger" aria-label="${texts.denySignIn({ name, code: userCode })}">${texts.deny}</button>`)}
</li>`
}

const transferNote = (view: AccountView, { status, createdAt, expiresAt, acceptedAt }: Transfer): Html => html`
<div class="note warn stack">
  <p>${
    status === 'accepted' && acceptedAt !== null
      ? texts.transferAccepted({ began: timePhrase(createdAt), accepted: timePhrase(acceptedAt) })
      : texts.transferOpen({ began: timePhrase(createdAt), until: timePhrase(expiresAt) })
  }</p>
  ${accountForm(view, 'wallet/transfer', html`<div><button class="small danger">${texts.cancel}</button></div>`)}
</div>`

/** Names of platforms, as wallets send them. */
const platforms: Record<string, string> = {
  ios: 'iPhone / iPad',
  android: 'Android',
  macos: 'Mac',
  linux: 'Linux',
  windows: 'Windows',
}

function deviceRow(view: AccountView, { id, platform, openedWith, createdAt, usedAt }: Device): Html {
  const name = platforms[platform] ?? platform
  return html`
<li>
  <div class="body"><strong>${name}</strong><small>${usedAt === null ? texts.since({ time: day(createdAt) }) : texts.sinceUsed({ time: day(createdAt), used: day(usedAt) })}</small>${openedWith !== null && html`<small>${texts.with({ program: programPhrase(openedWith) })}</small>`}</div>
  ${accountForm(view, 'wallet/devices', html`${hidden({ id })}<button class="small danger" aria-label="${texts.revokeDevice({ name })}">${texts.revoke}</button>`)}
</li>`
}
