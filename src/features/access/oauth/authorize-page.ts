/** The page on which an account holder authorizes an app or denies it access. */
import { html, inEnglish, plainName, type Html, type Wording } from '../../../http/html.ts'
import { page, type PageAsker } from '../../../http/page.ts'
import { WANTED_LANGUAGE } from '../../../http/page-language.ts'
import { isLoopbackClientId } from '../../../protocol/client-metadata.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { BASE_SCOPE, type ExpandedScope } from '../../../protocol/scopes.ts'
import type { ListedDelegation } from '../delegations/delegations.ts'
import { accountChooser, type Device, type SignedIn } from '../pages/pages.ts'
import {
  accountName,
  errorNote,
  goodNote,
  hidden,
  identifierField,
  passkeyPart,
  passkeyScript,
  passwordField,
  rememberField,
  type Fault,
} from '../page-parts/page-parts.ts'
import { permissionList, scopeLine, type SpaceNames } from '../scope-words/scope-words.ts'
import { consentTexts as texts } from './consent-texts.ts'
import type { OpenRequest, PendingRequest } from './authorization-request-store.ts'
import { REQUEST_TTL_SECS } from './authorization-requests.ts'
import { waitScript, walletBlock } from './wallet-consent-block.ts'
import type { Consent } from './wallet-consent-store.ts'

export interface AuthorizeView {
  requestUri: string
  pending: OpenRequest
  scopes: readonly ExpandedScope[]
  /** Names of the spaces in the scopes. */
  names: SpaceNames
  device: Device | null
  /** The accounts for which the accounts signed in on the browser may act. */
  shared: readonly SharedAccount[]
  /** Hidden fields that prove that the form comes from this page; null if the browser's headers prove it. */
  proof: Html[] | null
  /** What was entered, if the page is shown again; null the first time. */
  filled: Filled | null
  fault: Fault | null
  notice: Wording | null
  /** The consent that a wallet may decide; null if only a password is offered. */
  consent: Consent | null
  /** What the browser needs to use a passkey; null if none is offered. */
  passkey: object | null
  /** Whether the page shows the wallet first, because the person most likely signs in with it. */
  startsWithWallet: boolean
}

/** A shared account, and the account signed in on the browser that may act for it. */
export interface SharedAccount {
  signedIn: SignedIn
  delegation: ListedDelegation
}

export interface Filled {
  identifier: string
  /** The chosen account: its DID, or the id of the delegation; `other` for neither. */
  account: string | null
  granted: ReadonlySet<string>
  remember: boolean
  /**
   * The account that is signed in only until the request is decided, so that the person can choose for whom to act;
   * null if none is.
   */
  signedInForThis: Did | null
}

/** Form field with the account that is signed in only for this request. */
export const SIGNED_IN_FOR_THIS = 'signed_in_for_this'

/**
 * Query parameter of a browser that returns from the sign-up page or the page of forgotten passwords. It keeps
 * `prompt=create` from sending the browser to sign-up again.
 */
export const HAS_ACCOUNT = 'has_account'
/** Value of `HAS_ACCOUNT` if the person has just chosen a new password. */
export const WITH_NEW_PASSWORD = 'new-password'

type Named = Pick<AuthorizeView, 'requestUri' | 'pending'>

export const signUpUrl = (named: Named): string => `/account/sign-up?${new URLSearchParams(namesOf(named))}`

/** The host in the client's id: the only name of an app that others cannot copy. */
export const appHost = (clientId: string): string =>
  isLoopbackClientId(clientId) ? inEnglish(texts.appHere) : new URL(clientId).host

/** Like `appHost`, as words in the language of a page. */
export const appName = (clientId: string): Wording =>
  isLoopbackClientId(clientId) ? texts.appHere : new URL(clientId).host

export function authorizePage(asker: PageAsker, view: AuthorizeView): Promise<Response> {
  const { config } = asker.ctx
  const { pending, consent, passkey, fault, startsWithWallet } = view
  const question = texts.question({ app: appName(pending.client.clientId) })
  return page(asker, {
    title: question,
    language: pending.request.language,
    leavesOrigin: true,
    status: fault?.status,
    script: [...(consent === null ? [] : [waitScript.url]), ...(passkey === null ? [] : [passkeyScript.url])],
    body: html`
<section class="card ask">
  ${whoAsks(pending, question, new URL(config.publicUrl).host)}
  ${errorNote(fault) ?? goodNote(view.notice)}
  ${consent !== null && startsWithWallet ? walletFirst(view, consent) : passwordFirst(view)}
  <hr>
  ${furtherLinks(view)}
  ${technicalDetails(view)}
</section>
<p class="after">${leaveNote(pending)}</p>`,
  })
}

const passwordFirst = (view: AuthorizeView): Html => html`
${passwordForm(view)}
${view.consent && html`<details class="fold"${view.consent.matchCode !== null && html` open`}><summary>${texts.walletInstead}</summary>${walletPart(view, view.consent)}</details>`}`

/**
 * The page for an account that signs by wallet. The password form stays available for other accounts. The button that
 * refuses has a form of its own: before the fields of the password form, Enter would press it.
 */
const walletFirst = (view: AuthorizeView, consent: Consent): Html => html`
${walletPart(view, consent, html`<button form="deny" name="action" value="deny">${texts.deny}</button>`)}
<form id="deny" method="post" action="${actionOf(view)}" hidden>${hidden(namesOf(view))}${view.proof}</form>
<details class="fold"><summary>${view.device === null ? texts.passwordInstead : texts.anotherAccount}</summary>${passwordForm(view)}</details>`

/**
 * The form carries the names of the request, so that a form which is sent before the wallet has approved can lead back
 * to this page.
 */
const walletPart = (view: AuthorizeView, consent: Consent, beside?: Html): Html =>
  walletBlock(consent, {
    action: '/oauth/authorize/complete',
    label: texts.continue,
    fields: html`${hidden(namesOf(view))}`,
    beside,
  })

/**
 * The hidden fields that all pages of one sign-in carry: the names of the request, and the language that the app asked
 * for.
 */
const namesOf = ({ requestUri, pending: { client, request } }: Named): Record<string, string> => ({
  request_uri: requestUri,
  client_id: client.clientId,
  ...(request.language && { [WANTED_LANGUAGE]: request.language }),
})
const actionOf = (view: AuthorizeView): string => `/oauth/authorize?${new URLSearchParams(namesOf(view))}`

/** The first button of the form allows, because Enter presses it. */
function passwordForm(view: AuthorizeView): Html {
  const { device, proof, scopes, names, filled, passkey } = view
  return html`
<form method="post" action="${actionOf(view)}" class="stack">
  ${hidden(namesOf(view))}
  ${proof}
  ${filled?.signedInForThis && hidden({ [SIGNED_IN_FOR_THIS]: filled.signedInForThis })}
  ${device && choice(device, view)}
  ${signInFields(view)}
  ${permissionList(
    scopes.map((scope) => scopeLine(scope, checkbox(scope, filled), names)),
    {
      legend: texts.allows,
      note: scopes.length > 1 ? texts.untick : null,
    },
  )}
  <div class="decision">
    <button class="primary" name="action" value="approve">${texts.allow}</button>
    <button name="action" value="deny" formnovalidate>${texts.deny}</button>
  </div>
  ${passkeyPart(passkey, { label: texts.allowByPasskey, action: { name: 'action', value: 'approve' } })}
</form>`
}

function checkbox({ scope }: ExpandedScope, filled: Filled | null): Html | null {
  if (scope === BASE_SCOPE) return null
  const isTicked = filled === null || filled.granted.has(scope)
  return html`<input type="checkbox" name="granted_scope" value="${scope}"${isTicked && html` checked`}>`
}

/** Shows the app's host, which the client cannot choose freely. The name that it gives itself is marked as such. */
function whoAsks({ client: { clientId, name } }: PendingRequest, question: Wording, ownHost: string): Html {
  const isLoopback = isLoopbackClientId(clientId)
  const badge = isLoopback
    ? deviceIcon
    : appHost(clientId)
        .replace(/^www\./, '')
        .charAt(0)
        .toUpperCase()
  return html`
<header class="asker">
  <span class="badge" aria-hidden="true">${badge}</span>
  <h1>${question}</h1>
  <p class="quiet">${name ? texts.asksAs({ name: html`<bdi>${plainName(name)}</bdi>`, host: ownHost }) : texts.asks({ host: ownHost })}${isLoopback && html` ${texts.unverified}`}</p>
</header>`
}

const deviceIcon = html`<svg viewBox="0 0 24 24"><path d="M4 5h16v11H4zM9 20h6M12 16v4" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

function furtherLinks(view: AuthorizeView): Html {
  const { client } = view.pending
  const ofApp = [
    { uri: client.policyUri, text: texts.privacyPolicy },
    { uri: client.tosUri, text: texts.terms },
  ].filter(({ uri }) => uri !== null)
  return html`
<p class="links">
  <a href="/account/reset-password?${new URLSearchParams(namesOf(view)).toString()}">${texts.forgot}</a> <a href="${signUpUrl(view)}">${texts.create}</a>
  ${ofApp.map(({ uri, text }) => html`<a href="${uri}" rel="noreferrer noopener" target="_blank">${text}</a> `)}
</p>`
}

/** Names the host that receives the response, which may differ from the app's host. */
function leaveNote({ request }: PendingRequest): Html {
  const url = new URL(request.redirectUri)
  const target = url.host === '' ? request.redirectUri : url.host
  return html`${texts.leave({ target, account: (content) => html`<a href="/account">${content}</a>` })}`
}

/** The app's identifier, the redirect URI and the scopes, as programs write them. */
const technicalDetails = ({ pending: { client, request }, scopes }: AuthorizeView): Html => html`
<details class="aside">
  <summary>${texts.details}</summary>
  <dl class="facts">
    <div><dt>${texts.clientId}</dt><dd><code>${client.clientId}</code></dd></div>
    <div><dt>${texts.redirectUri}</dt><dd><code>${request.redirectUri}</code></dd></div>
    <div><dt>${texts.scopes}</dt>${scopes.map(({ scope }) => html`<dd><code>${scope}</code></dd>`)}</div>
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

/**
 * The choice of an account. If its sign-in does not suffice, an account without a password has to be chosen in its
 * wallet.
 */
function choice(device: Device, { pending, filled, consent, shared }: AuthorizeView): Html {
  const byWallet = consent === null ? texts.accountFirst : texts.inWallet
  return accountChooser(device, {
    chosen: filled?.account ?? preselected(device, shared, pending),
    missing: (signedIn) =>
      mustSignInAgain(signedIn, pending) ? (signedIn.account.hasPassword ? texts.passwordAgain : byWallet) : null,
    shared: (signedIn) => shared.filter((one) => one.signedIn === signedIn).map(sharedChoice),
  })
}

const sharedChoice = ({ signedIn, delegation }: SharedAccount) => ({
  value: delegation.id,
  name: texts.asShared({ account: accountName(delegation) }),
  note: texts.sharedWith({ account: accountName(signedIn.account) }),
})

/**
 * Whether a sign-in on this browser does not suffice for the request. If the app requires a new sign-in, it must be
 * newer than the request.
 */
export const mustSignInAgain = ({ isStale, signedInAt }: SignedIn, { request, expiresAt }: OpenRequest): boolean =>
  isStale || (request.prompt === 'login' && signedInAt <= expiresAt - REQUEST_TTL_SECS * 1000)

/** What the page ticks at first: the DID of an account, the id of a delegation, or `other`. */
export function preselected(
  device: Device,
  shared: readonly SharedAccount[],
  { request: { loginHint } }: PendingRequest,
): string {
  if (loginHint === null) return device.known[0]!.account.did
  const isHinted = ({ did, handle }: { did: string; handle: string | null }) =>
    did === loginHint || handle === loginHint
  return (
    device.known.find(({ account }) => isHinted(account))?.account.did ??
    shared.find(({ delegation }) => isHinted(delegation))?.delegation.id ??
    'other'
  )
}
