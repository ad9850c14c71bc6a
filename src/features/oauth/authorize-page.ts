/** The page on which a person lets an app in, or does not. */
import { html, plainName, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Context } from '../../platform/context.ts'
import { isLoopbackClientId } from '../../protocol/client-metadata.ts'
import { BASE_SCOPE, type ExpandedScope } from '../../protocol/scopes.ts'
import { errorNote, identifierField, isWrong, passwordField, type Device, type SignedIn } from '../web/web.ts'
import type { PendingRequest } from './authorization-requests.ts'
import { wordsOf, type Words } from './scope-words.ts'

export interface AuthorizeView {
  requestUri: string
  pending: PendingRequest
  scopes: readonly ExpandedScope[]
  device: Device | null
  /** What the person has filled in before, when the page is shown again. */
  filled: Filled | null
  message: string | null
}

export interface Filled {
  identifier: string
  account: string | null
  granted: ReadonlySet<string>
  remember: boolean
}

export function authorizePage({ config }: Context, view: AuthorizeView): Response {
  const { requestUri, pending, scopes, device, filled, message } = view
  const { request, client } = pending
  const asked = scopes.filter(({ scope }) => scope !== BASE_SCOPE)
  const base = scopes.filter(({ scope }) => scope === BASE_SCOPE)
  return page(config, {
    title: `Let ${appName(pending)} in?`,
    leavesOrigin: true,
    body: html`<form method="post" action="/oauth/authorize" class="card">
<input type="hidden" name="request_uri" value="${requestUri}">
<input type="hidden" name="client_id" value="${client.clientId}">
<div class="tight"><h1>Sign in to ${appName(pending)}?</h1>
<p class="quiet">This app asks for access to your account on ${new URL(config.publicUrl).host}.</p></div>
${appBox(pending)}
<fieldset><legend>${asked.length === 0 ? 'The app wants to' : 'The app wants to do the following'}</legend>
<ul class="permissions">${base.map(fixedPermission)}${asked.map((scope) => permission(scope, filled))}</ul>
${asked.length > 0 && html`<small>Untick what you do not want to allow. The app may then not be able to do everything.</small>`}</fieldset>
<hr>
${errorNote(message)}
${device ? accountChooser(device, view) : null}
${identifierField({ value: filled?.identifier ?? request.loginHint ?? '', when: 'needs-identifier', invalid: isWrong(message), autofocus: message !== null && filled?.identifier === '' })}
${passwordField({ when: 'needs-password', invalid: isWrong(message), autofocus: message !== null && filled?.identifier !== '' })}
<label class="check needs-password"><input type="checkbox" name="remember" value="yes"${filled?.remember && html` checked`}><span>Stay signed in on this device <small>Only on a device of your own.</small></span></label>
${device && html`<input type="hidden" name="form_token" value="${device.formToken}">`}
<div class="actions two"><button class="primary" name="action" value="approve">Allow access</button><button name="action" value="deny" formnovalidate>Deny</button></div>
<p class="links"><a href="/account/reset-password">Forgot your password?</a> <a href="${signUpUrl(requestUri, client.clientId)}">Create an account</a></p>
</form>
<p class="note">${leaveNote(pending)}</p>`,
  })
}

/** Says that whoever comes back from the sign-up page needs no account any more. */
export const HAS_ACCOUNT = 'has_account'

export const signUpUrl = (requestUri: string, clientId: string): string => `/account/sign-up?${new URLSearchParams({ request_uri: requestUri, client_id: clientId })}`

/** The one name that nobody else can have: the host of the client's id. */
export const appHost = (clientId: string): string => (isLoopbackClientId(clientId) ? 'an app on this device' : new URL(clientId).host)

const appName = ({ client }: PendingRequest): string => appHost(client.clientId)

/** What the client says of itself stands beside what it cannot choose, and is marked as its own words. */
function appBox({ client }: PendingRequest): Html {
  const { clientId, name, policyUri, tosUri } = client
  const isLoopback = isLoopbackClientId(clientId)
  const host = isLoopback ? 'An app on this device' : appHost(clientId)
  return html`<section class="app" aria-label="The app">
<span class="badge" aria-hidden="true">${isLoopback ? device : host.replace(/^www\./, '').charAt(0).toUpperCase()}</span>
<span class="name">${host}</span>
${isLoopback && html`<span class="where">Nobody vouches for it. Go on only if you have started it yourself.</span>`}
${(name || policyUri || tosUri) && html`<span class="where">${name && html`It calls itself “<bdi>${plainName(name)}</bdi>”. `}${links(policyUri, tosUri)}</span>`}
</section>
<details><summary>About this app</summary><dl class="facts"><div><dt>Identifier of the app</dt><dd><code>${clientId}</code></dd></div></dl></details>`
}

const device = html`<svg viewBox="0 0 24 24"><path d="M4 5h16v11H4zM9 20h6M12 16v4" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const links = (policyUri: string | null, tosUri: string | null): Html[] =>
  [{ uri: policyUri, text: 'Its privacy policy' }, { uri: tosUri, text: 'Its terms' }]
    .filter(({ uri }) => uri !== null)
    .map(({ uri, text }) => html`<a href="${uri}" rel="noreferrer noopener" target="_blank">${text}</a> `)

/** The target shows where the answer goes, which is not always where the app lives. */
function leaveNote({ request }: PendingRequest): Html {
  const url = new URL(request.redirectUri)
  const target = url.host === '' ? request.redirectUri : url.host
  return html`Whatever you decide, you go on to <strong>${target}</strong>. Apps that you let in are listed on your account page, where you can end their access at any time.`
}

const tick = html`<svg class="tick" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d="M4 10.5l4 4 8-9" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const fixedPermission = (scope: ExpandedScope): Html => html`<li class="permission">${tick}${body(wordsOf(scope), scope.scope)}</li>`

function permission(scope: ExpandedScope, filled: Filled | null): Html {
  const isTicked = filled === null || filled.granted.has(scope.scope)
  return html`<li><label class="permission"><input type="checkbox" name="granted_scope" value="${scope.scope}"${isTicked && html` checked`}>${body(wordsOf(scope), scope.scope)}</label></li>`
}

function body({ what, more, isGrave, parts = [] }: Words & { parts?: Words[] }, scope: string): Html {
  return html`<span class="body"><span class="what">${what}</span><span class="more">${isGrave && html`<strong class="grave">Far-reaching.</strong> `}${more}</span>${parts.map((part) => html`<span class="more">• ${part.what}</span>`)}<code>${scope}</code></span>`
}

/** Everybody who is signed in here, and a way to be somebody else. */
function accountChooser(device: Device, { pending, filled }: AuthorizeView): Html {
  const chosen = filled?.account ?? preselected(device.accounts, pending.request.loginHint)
  return html`<fieldset><legend>Choose an account</legend><div class="accounts">
${device.accounts.map((signedIn) => accountChoice(signedIn, { chosen, mustSignIn: pending.request.prompt === 'login' }))}
<label class="account"><input class="other" type="radio" name="account" value="other"${chosen === 'other' && html` checked`}><span class="who"><span>Another account</span></span></label>
</div></fieldset>`
}

function preselected(accounts: readonly SignedIn[], hint: string | null): string {
  if (hint === null) return accounts[0]!.account.did
  return accounts.find(({ account }) => account.did === hint || account.handle === hint)?.account.did ?? 'other'
}

function accountChoice({ account, isStale }: SignedIn, { chosen, mustSignIn }: { chosen: string; mustSignIn: boolean }): Html {
  const { did, handle } = account
  const needsPassword = isStale || mustSignIn
  return html`<label class="account"><input type="radio" name="account" value="${did}"${needsPassword && html` class="stale"`}${chosen === did && html` checked`}><span class="who"><span>${handle ? `@${handle}` : did}</span>${needsPassword ? html`<small>Enter your password again</small>` : html`<code>${did}</code>`}</span></label>`
}
