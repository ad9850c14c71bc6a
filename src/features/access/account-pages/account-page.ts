/** The page on which people manage their account: who has access to it, and its handle, email address and password. */
import { html, type Html } from '../../../http/html.ts'
import type { KnownOrigin } from '../../../http/origin.ts'
import { page } from '../../../http/page.ts'
import type { Context } from '../../../platform/context.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { ListedSession, ListedWalletSession } from '../sessions/sessions.ts'
import { appHost } from '../oauth/oauth.ts'
import { accountDetails } from './account-details.ts'
import { agentsPart } from './agents-page.ts'
import { accountForm, accountName, outcomeOf, type AccountView } from './account-view.ts'
import { eventRow, eventsUrl } from './events-page.ts'
import { foldedScopes, presetBoxes } from './scope-parts.ts'
import { sharingPart, sharingUrl } from './sharing-page.ts'
import { factorsPart } from './factors-page.ts'
import { invitesPart } from './invites-part.ts'
import { moveUrl } from './move-page.ts'
import { networkUrl } from './network-page.ts'
import { pushPart } from './push-part.ts'
import { walletPart } from './wallet-matters-view.ts'
import { day, field, hidden } from '../page-parts/page-parts.ts'
import { sentence } from '../scope-words/scope-words.ts'
import type { KnownBrowser } from '../pages/pages.ts'

export function accountPage({ config, clock }: Context, view: AccountView): Response {
  return page(config, {
    title: 'Your account',
    wide: true,
    status: view.outcome?.fault?.status,
    body: html`
${identity(view)}
${walletPart(view, config.publicUrl)}
${apps(view)}
${agentsPart(config, view)}
${sharingPart(view.account.did, view.sharing)}
${pushPart(view)}
${factorsPart(view)}
${appPasswords(view, clock.now())}
${sessions(view)}
${events(view)}
${invitesPart(view)}
${accountDetails(view)}`,
  })
}

function identity(view: AccountView): Html {
  const { account, device } = view
  const { status } = activityOf(account)
  const others = device.accounts.filter((signedIn) => signedIn.account.did !== account.did)
  const links = others.map(
    (other) =>
      html`<a href="/account?account=${encodeURIComponent(other.account.did)}">Switch to ${accountName(other.account)}</a> `,
  )
  return html`
<section class="card" id="account">
  <div class="row">
    <div class="tight"><h1 class="name">${accountName(account)}</h1><code>${account.did}</code></div>
    ${accountForm(view, 'sign-out', html`<button class="small">Sign out</button>`)}
  </div>
  ${outcomeOf(view, 'account')}
  ${status === 'takendown' && html`<p class="note warn">This account has been taken down. Please contact the operator of this server.</p>`}
  ${status === 'deactivated' && deactivatedNote(view)}
  ${account.email !== null && account.emailConfirmedAt === null && html`<p class="note">Your email address is not confirmed. <a href="#confirm-email">Confirm it</a></p>`}
  <nav class="links" aria-label="On this page">
    ${hasApps(view) && html`<a href="#apps">Apps</a> `}${view.agents.length > 0 && html`<a href="#agents">Agents</a> `}${view.account.hasPassword && html`<a href="#factors">Signing in</a> `}<a href="#app-passwords">App passwords</a> <a href="#sessions">Sessions</a> <a href="#activity">Activity</a>
    <a href="#handle">Handle</a> <a href="#email">Email address</a> <a href="#password">Password</a>
    <a href="#archive">Your data</a>
  </nav>
  <p class="links">${links}<a href="${networkUrl(view.account.did)}">How the network sees you</a> <a href="${sharingUrl(view.account.did)}">Shared accounts</a> <a href="/account/sign-in">Add an account</a></p>
</section>`
}

function deactivatedNote(view: AccountView): Html {
  const { did, deleteAfter } = view.account
  if (view.isMoving)
    return html`<p class="note">This account is moving here. <a href="${moveUrl(did)}">See how far it is</a></p>`
  return html`
<div class="note warn stack">
  <p>This account is deactivated: others do not see it${deleteAfter !== null && html`, and it will be deleted after ${day(deleteAfter)}`}.</p>
  <p>When you reactivate it, others see your account, your posts and your pictures again, and your apps can post for you${deleteAfter !== null && '. It is no longer deleted'}.</p>
  ${accountForm(view, 'reactivate', html`<div><button class="primary small">Reactivate account</button></div>`)}
</div>`
}

// An empty list gets no card of its own: the card of the sessions mentions it.
const hasApps = (view: AccountView): boolean => view.apps.length > 0 || view.outcome?.section === 'apps'
const hasAppPasswords = (view: AccountView): boolean => view.appPasswords.length > 0 || view.secret !== null

function apps(view: AccountView): Html | null {
  if (!hasApps(view)) return null
  const delegates = new Map(
    view.sharing.delegates.map(({ delegateDid, handle }) => [delegateDid, handle && `@${handle}`]),
  )
  const rows = view.apps.map(
    (app) => html`
<li>
  <div class="body">
    <strong>${sentence(appHost(app.clientId))}</strong>
    <small>Since ${day(app.createdAt)}, last seen ${day(app.refreshedAt)}</small>
    ${app.delegation !== null && html`<small>Signed in by ${delegates.get(app.delegation.delegateDid) ?? app.delegation.delegateDid}, who acts for you</small>`}
    ${app.openedWith !== null && html`<small>Authorized with ${app.openedWith}${app.openedFrom !== null && html` from the network ${app.openedFrom}`}</small>`}
    ${foldedScopes('What it may do', app.scope)}
  </div>
  ${accountForm(view, 'apps', html`${hidden({ id: app.id })}<button class="small danger" aria-label="End access of ${appHost(app.clientId)}">End access</button>`)}
</li>`,
  )
  return html`
<section class="card" id="apps">
  <div class="tight"><h2>Apps with access</h2><p class="quiet">Apps that you have authorized. Ending their access takes effect at once.</p></div>
  ${outcomeOf(view, 'apps')}
  ${rows.length === 0 ? html`<p class="note">No app has access to your account.</p>` : html`<ul class="list">${rows}</ul>`}
</section>`
}

function appPasswords(view: AccountView, now: Millis): Html | null {
  if (!hasAppPasswords(view)) return null
  const rows = view.appPasswords.map(
    ({ name, createdAt, privileged, scope, expiresAt, lastUsedAt }) => html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>Since ${day(createdAt)}, ${lastUsedAt === null ? 'not used yet' : html`last used ${day(lastUsedAt)}`}${privileged && ', may read direct messages'}</small>
    ${expiresAt !== null && html`<small>${expiresAt > now ? 'Ends' : 'Ended'} ${day(expiresAt)}</small>`}
    ${scope !== null && foldedScopes('What it may do', scope)}
  </div>
  ${accountForm(view, 'app-passwords/revoke', html`${hidden({ name })}<button class="small danger" aria-label="Revoke ${name}">Revoke</button>`)}
</li>`,
  )
  return html`
<section class="card" id="app-passwords">
  <div class="tight"><h2>App passwords</h2><p class="quiet">${APP_PASSWORD_USE}</p></div>
  ${outcomeOf(view, 'app-passwords')}
  ${view.secret && secretNote(view.secret)}
  ${rows.length > 0 && html`<ul class="list">${rows}</ul>`}
  ${newAppPassword(view)}
</section>`
}

const APP_PASSWORD_USE =
  'For apps that do not support signing in through this server. An app password cannot change your handle, email address or password. It works without a second factor.'

function newAppPassword(view: AccountView): Html {
  const own = view.outcome?.section === 'app-passwords' ? view.outcome : null
  return html`
  <details${own?.fault && html` open`}>
    <summary>New app password</summary>
    ${accountForm(
      view,
      'app-passwords',
      html`
    ${!hasAppPasswords(view) && html`<p class="quiet">${APP_PASSWORD_USE}</p>`}
    ${field({ id: 'app-password-name', name: 'name', label: 'Name', value: own?.typed?.get('name') ?? '', required: true, maxLength: 255, hint: 'To help you recognise it later, for example the name of the app.', fault: own?.fault })}
    <fieldset class="stack">
      <legend>What it may do</legend>
      <p class="quiet">Without a tick: all that apps usually do, except direct messages.</p>
      ${presetBoxes(own?.typed)}
    </fieldset>
    <label class="check"><input type="checkbox" name="privileged" value="yes"${own?.typed?.has('privileged') && html` checked`}><span>May read and send direct messages</span></label>
    ${field({ id: 'app-password-scope', name: 'scope', label: 'Further scopes', value: own?.typed?.get('scope') ?? '', maxLength: 4096, hint: 'For developers: scopes of OAuth, separated by spaces.', fault: own?.fault })}
    ${field({ id: 'app-password-ends', name: 'ends', label: 'Last day', type: 'date', value: own?.typed?.get('ends') ?? '', hint: 'Without one, it works until you revoke it.', fault: own?.fault })}
    <div><button>Create app password</button></div>`,
    )}
  </details>`
}

const secretNote = ({ name, password }: { name: string; password: string }): Html => html`
<div class="note good" role="status">
  <p>This is the app password “${name}”. It is shown only once, so copy it now:</p>
  <p class="secret">${password}</p>
</div>`

/** Entries listed of each kind: a program that keeps signing in may have hundreds of sessions. */
const MAX_SHOWN_SESSIONS = 10

function sessions(view: AccountView): Html {
  const others = view.browsers.filter(({ tokenHash }) => tokenHash !== view.device.tokenHash)
  const newest = <Row>(list: readonly Row[]): readonly Row[] =>
    view.showsAllSessions ? list : list.slice(0, MAX_SHOWN_SESSIONS)
  const rows = [
    ...newest([...view.browsers.filter(({ tokenHash }) => tokenHash === view.device.tokenHash), ...others]).map(
      (browser) => browserRow(view, browser),
    ),
    ...newest(view.walletSessions).map((session) => walletSessionRow(view, session)),
    ...newest(view.sessions).map((session) => sessionRow(view, session)),
  ]
  const count = view.browsers.length + view.walletSessions.length + view.sessions.length
  return html`
<section class="card" id="sessions">
  <div class="tight">
    <h2>Sessions</h2>
    <p class="quiet">${!hasApps(view) && 'No app has been given access. '}Where you are signed in: browsers, apps in which you have entered a password, and wallets. Of an IP address we store only the network.</p>
  </div>
  ${outcomeOf(view, 'sessions')}
  <ul class="list">${rows}</ul>
  ${rows.length < count && html`<p class="links"><a href="/account?${new URLSearchParams({ account: view.account.did, sessions: 'all' }).toString()}#sessions">Show all ${count}</a></p>`}
  ${others.length > 1 && accountForm(view, 'browsers', html`<div><button class="small danger">Sign out of all other browsers</button></div>`)}
  ${!hasAppPasswords(view) && html`<div class="stack" id="app-passwords">${outcomeOf(view, 'app-passwords')}${newAppPassword(view)}</div>`}
</section>`
}

const events = ({ account, events }: AccountView): Html => html`
<section class="card" id="activity">
  <div class="tight"><h2>Activity</h2><p class="quiet">What happened to your account, such as sign-ins and changes of who has access.</p></div>
  <ul class="list">${events.map(eventRow)}</ul>
  <p class="links"><a href="${eventsUrl(account.did)}">All activity of 90 days</a></p>
</section>`

function browserRow(view: AccountView, browser: KnownBrowser): Html {
  const { tokenHash, signedInAt, usedAt, openedWith } = browser
  const name = openedWith ?? 'A browser'
  const isThis = tokenHash === view.device.tokenHash
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${isThis ? 'This browser' : 'Browser'}, signed in to this page</small>
    <small>${firstUse(browser)}, signed in ${day(signedInAt)}${lastUse(usedAt)}</small>
  </div>
  ${!isThis && accountForm(view, 'browsers', html`${hidden({ id: tokenHash })}<button class="small danger" aria-label="Sign out of ${name}">Sign out</button>`)}
</li>`
}

function walletSessionRow(view: AccountView, session: ListedWalletSession): Html {
  const { tokenHash, expiresAt, usedAt, openedWith } = session
  const name = openedWith ?? 'A wallet'
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>Wallet, to manage your account and its recovery</small>
    <small>${firstUse(session)}${lastUse(usedAt)}, ends ${day(expiresAt)}</small>
  </div>
  ${accountForm(view, 'wallet-sessions', html`${hidden({ id: tokenHash })}<button class="small danger" aria-label="End the wallet session of ${name}">End</button>`)}
</li>`
}

function sessionRow(view: AccountView, session: ListedSession): Html {
  const { id, rotatedAt, expiresAt, openedWith } = session
  const name = openedWith ?? 'An app'
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>App, signed in with ${meansOf(session)}</small>
    <small>${firstUse(session)}, ${rotatedAt !== null && html`last used ${day(rotatedAt)}, `}expires ${day(expiresAt)} unless used before</small>
  </div>
  ${accountForm(view, 'sessions', html`${hidden({ id })}<button class="small danger" aria-label="End ${name}">End</button>`)}
</li>`
}

function meansOf({ appPassword, byPassword }: ListedSession): Html {
  if (appPassword !== null) return html`the app password “${appPassword}”`
  return byPassword ? html`your password` : html`a wallet`
}

/** Returns an empty text if it is unknown. */
const lastUse = (usedAt: Millis | null): Html | null => (usedAt === null ? null : html`, last used ${day(usedAt)}`)

/** When and from which network the session was opened. */
function firstUse({ openedAt, openedFrom }: KnownOrigin): Html {
  if (openedAt === null) return html`First use unknown`
  return html`First used ${day(openedAt)}${openedFrom !== null && html` from the network ${openedFrom}`}`
}
