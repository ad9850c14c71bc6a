/** The page on which an account holder authorizes an app or denies it access. */
import { html, plainName, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Context } from '../../platform/context.ts'
import { isLoopbackClientId } from '../../protocol/client-metadata.ts'
import { BASE_SCOPE, type ExpandedScope } from '../../protocol/scopes.ts'
import {
  accountChooser,
  errorNote,
  type Fault,
  hidden,
  identifierField,
  passwordField,
  rememberField,
  type Device,
  type SignedIn,
} from '../web/web.ts'
import type { PendingRequest } from './authorization-request-store.ts'
import { fixedScope, scopeInWords } from './scope-view.ts'
import { waitScript, walletBlock } from './wallet-consent-block.ts'
import type { Consent } from './wallet-consent-store.ts'

export interface AuthorizeView {
  requestUri: string
  pending: PendingRequest
  scopes: readonly ExpandedScope[]
  device: Device | null
  /** Hidden fields that show that the form comes from this page; null if the browser's headers show it. */
  proof: Html[] | null
  /** The earlier input, when the page is shown again; null the first time. */
  filled: Filled | null
  fault: Fault | null
  /** The consent that a wallet may decide; null if only a password is offered. */
  consent: Consent | null
}

export interface Filled {
  identifier: string
  account: string | null
  granted: ReadonlySet<string>
  remember: boolean
}

/** Query parameter of a browser that returns from the sign-up page, so that `prompt=create` does not send it there again. */
export const HAS_ACCOUNT = 'has_account'

export const signUpUrl = (requestUri: string, clientId: string): string =>
  `/account/sign-up?${new URLSearchParams({ request_uri: requestUri, client_id: clientId })}`

/** The host in the client's id, which is the only name of an app that others cannot copy. */
export const appHost = (clientId: string): string => (isLoopbackClientId(clientId) ? 'an app on this device' : new URL(clientId).host)

export function authorizePage({ config }: Context, view: AuthorizeView): Response {
  const { requestUri, pending, scopes, device, proof, filled, fault, consent } = view
  const { client } = pending
  const name = appHost(client.clientId)
  const request = { request_uri: requestUri, client_id: client.clientId }
  const intro = html`
  <div class="tight">
    <h1>Sign in to ${name}?</h1>
    <p class="quiet">This app asks for access to your account on ${new URL(config.publicUrl).host}.</p>
  </div>
  ${appBox(pending)}`
  return page(config, {
    title: `Authorize ${name}?`,
    leavesOrigin: true,
    status: fault?.status,
    script: consent === null ? undefined : waitScript.url,
    body: html`
${consent && html`<div class="card">${intro}<hr>${walletBlock(consent, completion)}</div>`}
<form method="post" action="/oauth/authorize?${new URLSearchParams(request).toString()}" class="card">
  ${hidden(request)}
  ${proof}
  ${consent === null ? intro : html`<h2>With your password</h2>`}
  ${permissions(scopes, filled)}
  <hr>
  ${errorNote(fault)}
  ${device && choice(device, view)}
  ${signInFields(view)}
  <p class="links"><a href="/account/reset-password">Forgot your password?</a> <a href="${signUpUrl(requestUri, client.clientId)}">Create an account</a></p>
  ${technicalDetails(pending, scopes)}
  <div class="decision">
    <button class="primary" name="action" value="approve">Allow access</button>
    <button name="action" value="deny" formnovalidate>Deny</button>
  </div>
</form>
<p class="note">${leaveNote(pending)}</p>`,
  })
}

const completion = { heading: 'With your wallet', action: '/oauth/authorize/complete', label: 'Continue to the app' }

/** Shows the app's host, which the client cannot choose freely. The name that it gives itself is marked as such. */
function appBox({ client }: PendingRequest): Html {
  const { clientId, name, policyUri, tosUri } = client
  const isLoopback = isLoopbackClientId(clientId)
  const host = isLoopback ? 'An app on this device' : appHost(clientId)
  const badge = isLoopback
    ? deviceIcon
    : host
        .replace(/^www\./, '')
        .charAt(0)
        .toUpperCase()
  return html`
<section class="app" aria-label="The app">
  <span class="badge" aria-hidden="true">${badge}</span>
  <span class="name">${host}</span>
  ${isLoopback && html`<span class="where">Its identity cannot be verified. Continue only if you started it yourself.</span>`}
  ${(name || policyUri || tosUri) && html`<span class="where">${name && html`It calls itself “<bdi>${plainName(name)}</bdi>”. `}${links(policyUri, tosUri)}</span>`}
</section>`
}

const deviceIcon = html`<svg viewBox="0 0 24 24"><path d="M4 5h16v11H4zM9 20h6M12 16v4" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const links = (policyUri: string | null, tosUri: string | null): Html[] =>
  [
    { uri: policyUri, text: 'Its privacy policy' },
    { uri: tosUri, text: 'Its terms' },
  ]
    .filter(({ uri }) => uri !== null)
    .map(({ uri, text }) => html`<a href="${uri}" rel="noreferrer noopener" target="_blank">${text}</a> `)

/** Names the host that receives the response, which may differ from the app's host. */
function leaveNote({ request }: PendingRequest): Html {
  const url = new URL(request.redirectUri)
  const target = url.host === '' ? request.redirectUri : url.host
  return html`Either way, you continue to <strong>${target}</strong>. Your account page lists the apps that have access, and you can end their access there at any time.`
}

// Requested permissions

function permissions(scopes: readonly ExpandedScope[], filled: Filled | null): Html {
  const asked = scopes.filter(({ scope }) => scope !== BASE_SCOPE)
  const base = scopes.filter(({ scope }) => scope === BASE_SCOPE)
  return html`
<fieldset>
  <legend>${asked.length === 0 ? 'The app wants to' : 'The app wants to do the following'}</legend>
  <ul class="permissions">
    ${base.map(fixedScope)}
    ${asked.map((scope) => permission(scope, filled))}
  </ul>
  ${asked.length > 0 && html`<small>Untick what you do not want to allow. Parts of the app may then not work.</small>`}
</fieldset>`
}

function permission(scope: ExpandedScope, filled: Filled | null): Html {
  const isTicked = filled === null || filled.granted.has(scope.scope)
  return html`
<li>
  <label class="permission">
    <input type="checkbox" name="granted_scope" value="${scope.scope}"${isTicked && html` checked`}>
    ${scopeInWords(scope)}
  </label>
</li>`
}

/** The app's identifier, the redirect URI and the scopes, as programs write them. */
const technicalDetails = ({ client, request }: PendingRequest, scopes: readonly ExpandedScope[]): Html => html`
<details>
  <summary>Technical details</summary>
  <dl class="facts">
    <div><dt>Client identifier</dt><dd><code>${client.clientId}</code></dd></div>
    <div><dt>Redirect URI</dt><dd><code>${request.redirectUri}</code></dd></div>
    <div><dt>Scopes</dt>${scopes.map(({ scope }) => html`<dd><code>${scope}</code></dd>`)}</div>
  </dl>
</details>`

// Sign-in

function signInFields({ pending, device, filled, fault }: AuthorizeView): Html {
  // A hidden field must not be required: the browser would refuse to send the form without saying why.
  const required = device === null
  return html`
${identifierField({ value: filled?.identifier ?? pending.request.loginHint ?? '', when: 'needs-identifier', required, autofocus: fault !== null && filled?.identifier === '' })}
${passwordField({ when: 'needs-password', required, autofocus: fault !== null && filled?.identifier !== '', fault })}
${rememberField(filled?.remember, 'needs-password')}`
}

/** An account without a password is chosen in its wallet, once its sign-in does not suffice. */
function choice(device: Device, { pending, filled, consent }: AuthorizeView): Html {
  const mustSignIn = pending.request.prompt === 'login'
  const byWallet = consent === null ? 'Sign in to your account page again first' : 'Use your wallet above'
  return accountChooser(device, {
    chosen: filled?.account ?? preselected(device.accounts, pending.request.loginHint),
    missing: ({ account, isStale }) => (isStale || mustSignIn ? (account.hasPassword ? 'Enter your password again' : byWallet) : null),
  })
}

function preselected(accounts: readonly SignedIn[], hint: string | null): string {
  if (hint === null) return accounts[0]!.account.did
  return accounts.find(({ account }) => account.did === hint || account.handle === hint)?.account.did ?? 'other'
}
