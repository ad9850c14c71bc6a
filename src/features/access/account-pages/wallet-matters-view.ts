/**
 * The part of the account page about the holder's wallet: requests that wait for it, a transfer to another device, and
 * the devices that hold a token. Accounts to which none of this applies do not see it.
 */
import { html, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import { networkOf } from '../../../protocol/ip-address.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { timeInWords } from '../../../base/time-words.ts'
import { appHost, consentsAwaiting, type Consent } from '../oauth/oauth.ts'
import { runningTransfer, type Transfer } from '../../identity/transfers/transfers.ts'
import { devicesOf, type Device } from '../wallet-devices/wallet-devices.ts'
import { accountForm, outcomeOf, type AccountView, type WalletMatters } from './account-view.ts'
import { day, hidden } from '../page-parts/page-parts.ts'

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
  <h2>Your wallet</h2>
  ${outcome}
  ${
    consents.length > 0 &&
    html`
  <div class="stack">
    <h3>Waiting for your answer</h3>
    <p class="quiet">Someone entered your account name to sign in. Open your wallet to answer. Approve only a sign-in that you started yourself just now.</p>
    <ul class="list">${consents.map((consent) => consentRow(view, consent, publicUrl))}</ul>
  </div>`
  }
  ${transfer && transferNote(view, transfer)}
  ${
    devices.length > 0 &&
    html`
  <div class="stack">
    <h3>Devices</h3>
    <p class="quiet">Devices to which your account was transferred. A revoked device can no longer use this server, but its wallet keeps its key.</p>
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
  const name = clientId === publicUrl ? 'this account page' : appHost(clientId)
  const network = networkOf(ip)
  return html`
<li>
  <div class="body">
    <strong>Sign-in to ${name}</strong>
    <small>Since ${timeInWords(createdAt)}${openedWith !== null && html`, with ${openedWith}`}${network !== null && html`, from the network ${network}`}</small>
    ${webOrigin !== null && webOrigin !== publicUrl && html`<small>Begun on ${webOrigin}</small>`}
    <small>Code for your wallet: <strong>${userCode}</strong></small>
  </div>
  ${accountForm(view, 'wallet/requests', html`${hidden({ id: requestId })}<button class="small danger" aria-label="Deny the sign-in to ${name} with the code ${userCode}">Deny</button>`)}
</li>`
}

const transferNote = (view: AccountView, { status, createdAt, expiresAt, acceptedAt }: Transfer): Html => html`
<div class="note warn stack">
  <p>A transfer of your account to another device began on ${timeInWords(createdAt)}. ${
    status === 'accepted' && acceptedAt !== null
      ? html`A device accepted it on ${timeInWords(acceptedAt)}. When it is completed, everything else is signed out.`
      : html`Any device with its code can accept it until ${timeInWords(expiresAt)}.`
  } If this was not you, cancel it.</p>
  ${accountForm(view, 'wallet/transfer', html`<div><button class="small danger">Cancel the transfer</button></div>`)}
</div>`

/** Names of platforms, as wallets send them. */
const platforms: Record<string, string> = {
  ios: 'iPhone or iPad',
  android: 'Android',
  macos: 'Mac',
  linux: 'Linux',
  windows: 'Windows',
}

function deviceRow(view: AccountView, { id, platform, openedWith, createdAt }: Device): Html {
  const name = platforms[platform] ?? platform
  return html`
<li>
  <div class="body"><strong>${name}</strong><small>Since ${day(createdAt)}${openedWith !== null && html`, with ${openedWith}`}</small></div>
  ${accountForm(view, 'wallet/devices', html`${hidden({ id })}<button class="small danger" aria-label="Revoke ${name}">Revoke</button>`)}
</li>`
}
