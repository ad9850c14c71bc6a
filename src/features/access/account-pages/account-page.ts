/** The page on which people manage their account: who has access to it, and its handle, email address and password. */
import { html, type Html, type Phrase, type Wording } from '../../../http/html.ts'
import { programPhrase } from '../../../http/program-words.ts'
import type { KnownOrigin } from '../../../http/origin.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { page, type PageAsker } from '../../../http/page.ts'
import { isLoopbackClientId } from '../../../protocol/client-metadata.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { AppPassword, ListedSession, ListedWalletSession } from '../sessions/sessions.ts'
import { EVENT_KEPT_DAYS } from '../../identity/account-events/account-events.ts'
import { appHost } from '../oauth/oauth.ts'
import { accountDetails } from './account-details.ts'
import { accountTexts as texts } from './account-texts.ts'
import { agentsPart } from './agents-page.ts'
import { accountForm, accountUrl, BEGINNING, outcomeOf, partOf, type AccountView, type List } from './account-view.ts'
import { eventRow, eventsUrl } from './events-page.ts'
import { foldedScopes, presetBoxes } from './scope-parts.ts'
import { sharingPart, sharingUrl } from './sharing-page.ts'
import { factorsPart } from './factors-page.ts'
import { invitesPart } from './invites-part.ts'
import { moveUrl } from './move-page.ts'
import { networkUrl } from './network-page.ts'
import { pushPart } from './push-part.ts'
import { walletPart } from './wallet-matters-view.ts'
import { accountName, day, field, hidden } from '../page-parts/page-parts.ts'
import type { ListedBrowser } from '../pages/pages.ts'

export function accountPage(asker: PageAsker, view: AccountView): Promise<Response> {
  const { config, clock } = asker.ctx
  return page(asker, {
    title: texts.title,
    wide: true,
    status: view.outcome?.fault?.status,
    body: view.alone === null ? wholePage(view, config, clock.now()) : listAlone(view, config, clock.now()),
  })
}

const wholePage = (view: AccountView, config: Config, now: Millis): Html => html`
${identity(view)}
${walletPart(view, config.publicUrl)}
${apps(view)}
${agentsPart(config, view)}
${sharingPart(view.account.did, view.sharing)}
${pushPart(view)}
${factorsPart(view)}
${appPasswords(view, now)}
${sessions(view)}
${events(view)}
${invitesPart(view)}
${accountDetails(view)}`

const listParts: Readonly<Record<List, (view: AccountView, config: Config, now: Millis) => Html | null>> = {
  apps,
  agents: (view, config) => agentsPart(config, view),
  pushes: pushPart,
  'app-passwords': (view, _, now) => appPasswords(view, now),
  sessions,
  invites: invitesPart,
}

const listAlone = (view: AccountView, config: Config, now: Millis): Html => html`
<section class="card">
  <h1 class="name">${accountName(view.account)}</h1>
  <p class="links"><a href="${accountUrl(view.account.did)}">${texts.back}</a></p>
</section>
${listParts[view.alone!.list](view, config, now)}`

function identity(view: AccountView): Html {
  const { account, device } = view
  const { status } = activityOf(account)
  const others = device.accounts.filter((signedIn) => signedIn.account.did !== account.did)
  const links = others.map(
    (other) =>
      html`<a href="/account?account=${encodeURIComponent(other.account.did)}">${texts.switchTo({ account: accountName(other.account) })}</a> `,
  )
  return html`
<section class="card" id="account">
  <div class="row">
    <div class="tight"><h1 class="name">${accountName(account)}</h1><code>${account.did}</code></div>
    ${accountForm(view, 'sign-out', html`<button class="small">${texts.signOut}</button>`)}
  </div>
  ${outcomeOf(view, 'account')}
  ${status === 'takendown' && html`<p class="note warn">${texts.takenDown}</p>`}
  ${status === 'deactivated' && deactivatedNote(view)}
  ${account.email !== null && account.emailConfirmedAt === null && html`<p class="note">${texts.notConfirmed({ confirm: (words) => html`<a href="#confirm-email">${words}</a>` })}</p>`}
  <nav class="links" aria-label="${texts.onThisPage}">
    ${hasApps(view) && html`<a href="#apps">${texts.toApps}</a> `}${view.agents.length > 0 && html`<a href="#agents">${texts.agents}</a> `}${view.account.hasPassword && html`<a href="#factors">${texts.toFactors}</a> `}<a href="#app-passwords">${texts.appPasswords}</a> <a href="#sessions">${texts.sessions}</a> <a href="#activity">${texts.activity}</a>
    <a href="#handle">${texts.handle}</a> <a href="#email">${texts.email}</a> <a href="#password">${texts.password}</a>
    <a href="#archive">${texts.yourData}</a>
  </nav>
  <p class="links">${links}<a href="${networkUrl(view.account.did)}">${texts.network}</a> <a href="${sharingUrl(view.account.did)}">${texts.sharing}</a> <a href="/account/sign-in">${texts.addAccount}</a></p>
</section>`
}

function deactivatedNote(view: AccountView): Html {
  const { did, deleteAfter } = view.account
  if (view.isMoving)
    return html`<p class="note">${texts.moving({ progress: (words) => html`<a href="${moveUrl(did)}">${words}</a>` })}</p>`
  return html`
<div class="note warn stack" role="status">
  <p>${deleteAfter === null ? texts.deactivatedNow : texts.deactivatedUntil({ day: day(deleteAfter) })}</p>
  <p>${deleteAfter === null ? texts.reactivateMeans : texts.reactivateKeeps}</p>
  ${accountForm(view, 'reactivate', html`<div><button class="primary small">${texts.reactivate}</button></div>`)}
</div>`
}

// An empty list of apps gets no card of its own: the card of the sessions mentions it.
const hasApps = (view: AccountView): boolean => view.apps.length > 0 || view.outcome?.section === 'apps'
const hasAppPasswords = (view: AccountView): boolean => view.appPasswords.length > 0 || view.secret !== null

function apps(view: AccountView): Html | null {
  if (!hasApps(view)) return null
  const delegates = new Map(
    view.sharing.delegates.map(({ delegateDid, handle }) => [delegateDid, handle && `@${handle}`]),
  )
  const { shown, more } = partOf(view, 'apps', view.apps)
  const rows = shown.map(
    (app) => html`
<li>
  <div class="body">
    <strong>${nameOfApp(app.clientId)}</strong>
    <small>${texts.sinceSeen({ from: day(app.createdAt), seen: day(app.refreshedAt) })}</small>
    ${app.delegation !== null && html`<small>${texts.signedInBy({ account: delegates.get(app.delegation.delegateDid) ?? app.delegation.delegateDid })}</small>`}
    ${app.openedWith !== null && html`<small>${authorizedWith(app.openedWith, app.openedFrom)}</small>`}
    ${foldedScopes(texts.mayDo, app.scope)}
  </div>
  ${accountForm(view, 'apps', html`${hidden({ id: app.id })}<button class="small danger" aria-label="${texts.endAccessOf({ name: nameOfApp(app.clientId) })}">${texts.endAccess}</button>`)}
</li>`,
  )
  return html`
<section class="card" id="apps">
  <div class="tight"><h2>${texts.apps}</h2><p class="quiet">${texts.appsLead}</p></div>
  ${outcomeOf(view, 'apps')}
  ${rows.length === 0 ? html`<p class="note">${texts.noApps}</p>` : html`<ul class="list">${rows}</ul>`}
  ${more}
</section>`
}

const nameOfApp = (clientId: string): Wording => (isLoopbackClientId(clientId) ? texts.appHere : appHost(clientId))

const authorizedWith = (openedWith: string, network: string | null): Phrase => {
  const program = programPhrase(openedWith)
  return network === null ? texts.authorizedWith({ program }) : texts.authorizedWithFrom({ program, network })
}

function appPasswords(view: AccountView, now: Millis): Html | null {
  if (!hasAppPasswords(view)) return null
  const { shown, more } = partOf(view, 'app-passwords', view.appPasswords)
  const rows = shown.map(
    ({ name, scope, expiresAt, ...used }) => html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${useOf(used)}</small>
    ${expiresAt !== null && html`<small>${expiresAt > now ? texts.ends({ day: day(expiresAt) }) : texts.ended({ day: day(expiresAt) })}</small>`}
    ${scope !== null && foldedScopes(texts.mayDo, scope)}
  </div>
  ${accountForm(view, 'app-passwords/revoke', html`${hidden({ name })}<button class="small danger" aria-label="${texts.revokeOf({ name })}">${texts.revoke}</button>`)}
</li>`,
  )
  return html`
<section class="card" id="app-passwords">
  <div class="tight"><h2>${texts.appPasswords}</h2><p class="quiet">${texts.appPasswordUse}</p></div>
  ${outcomeOf(view, 'app-passwords')}
  ${view.secret && secretNote(view.secret)}
  ${rows.length > 0 && html`<ul class="list">${rows}</ul>`}
  ${more}
  ${newAppPassword(view)}
</section>`
}

function useOf({
  createdAt,
  lastUsedAt,
  privileged,
}: Pick<AppPassword, 'createdAt' | 'lastUsedAt' | 'privileged'>): Phrase {
  const from = day(createdAt)
  const times = lastUsedAt === null ? texts.sinceUnused({ from }) : texts.sinceUsed({ from, used: day(lastUsedAt) })
  return privileged ? texts.andMessages({ times }) : times
}

function newAppPassword(view: AccountView): Html {
  const own = view.outcome?.section === 'app-passwords' ? view.outcome : null
  return html`
  <details${own?.fault && html` open`}>
    <summary>${texts.newAppPassword}</summary>
    ${accountForm(
      view,
      'app-passwords',
      html`
    ${!hasAppPasswords(view) && html`<p class="quiet">${texts.appPasswordUse}</p>`}
    ${field({ id: 'app-password-name', name: 'name', label: texts.name, value: own?.typed?.get('name') ?? '', required: true, maxLength: 255, hint: texts.nameHint, fault: own?.fault })}
    <fieldset class="stack">
      <legend>${texts.mayDo}</legend>
      <p class="quiet">${texts.withoutTick}</p>
      ${presetBoxes(own?.typed)}
    </fieldset>
    <label class="check"><input type="checkbox" name="privileged" value="yes"${own?.typed?.has('privileged') && html` checked`}><span>${texts.messages}</span></label>
    ${field({ id: 'app-password-scope', name: 'scope', label: texts.scope, value: own?.typed?.get('scope') ?? '', maxLength: 4096, hint: texts.scopeHint, fault: own?.fault })}
    ${field({ id: 'app-password-ends', name: 'ends', label: texts.lastDay, type: 'date', value: own?.typed?.get('ends') ?? '', hint: texts.lastDayHint, fault: own?.fault })}
    <div><button>${texts.createAppPassword}</button></div>`,
    )}
  </details>`
}

const secretNote = ({ name, password }: { name: string; password: string }): Html => html`
<div class="note good" role="status">
  <p>${texts.secret({ name })}</p>
  <p class="secret">${password}</p>
</div>`

function sessions(view: AccountView): Html {
  const others = view.browsers.filter(({ tokenHash }) => tokenHash !== view.device.tokenHash)
  const these = view.browsers.filter(({ tokenHash }) => tokenHash === view.device.tokenHash)
  const kinds: (() => Html)[][] = [
    [...these, ...others].map((browser) => () => browserRow(view, browser)),
    view.walletSessions.map((session) => () => walletSessionRow(view, session)),
    view.sessions.map((session) => () => sessionRow(view, session)),
  ]
  // A program that keeps signing in may have hundreds of sessions, which must not take the places of the other kinds.
  const newest = kinds.flatMap((kind) => kind.slice(0, BEGINNING))
  const { shown, more } = partOf(view, 'sessions', kinds.flat(), newest)
  return html`
<section class="card" id="sessions">
  <div class="tight">
    <h2>${texts.sessions}</h2>
    <p class="quiet">${texts.sessionsLead}</p>
    ${!hasApps(view) && html`<p class="quiet">${texts.noAppAccess}</p>`}
  </div>
  ${outcomeOf(view, 'sessions')}
  <ul class="list">${shown.map((row) => row())}</ul>
  ${more}
  ${others.length > 1 && accountForm(view, 'browsers', html`<div><button class="small danger">${texts.signOutOthers}</button></div>`)}
  ${!hasAppPasswords(view) && html`<div class="stack" id="app-passwords">${outcomeOf(view, 'app-passwords')}${newAppPassword(view)}</div>`}
</section>`
}

const events = ({ account, events }: AccountView): Html => html`
<section class="card" id="activity">
  <div class="tight"><h2>${texts.activity}</h2><p class="quiet">${texts.activityLead}</p></div>
  <ul class="list">${events.map(eventRow)}</ul>
  <p class="links"><a href="${eventsUrl(account.did)}">${texts.allActivity({ days: EVENT_KEPT_DAYS })}</a></p>
</section>`

function browserRow(view: AccountView, browser: ListedBrowser): Html {
  const { tokenHash, signedInAt, usedAt, openedWith, ends } = browser
  const name = openedWith === null ? texts.browser : programPhrase(openedWith)
  const times = { first: firstUse(browser), day: day(signedInAt) }
  const isThis = tokenHash === view.device.tokenHash
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${isThis ? texts.thisBrowser : texts.otherBrowser}</small>
    <small>${usedAt === null ? texts.signedIn(times) : texts.signedInUsed({ ...times, used: day(usedAt) })}</small>
    <small>${browser.isRemembered ? texts.staysUntil({ unused: day(ends.unused), last: day(ends.last) }) : texts.endsSoon}</small>
  </div>
  ${!isThis && accountForm(view, 'browsers', html`${hidden({ id: tokenHash })}<button class="small danger" aria-label="${texts.signOutOf({ name })}">${texts.signOut}</button>`)}
</li>`
}

function walletSessionRow(view: AccountView, session: ListedWalletSession): Html {
  const { tokenHash, expiresAt, usedAt, openedWith } = session
  const name = openedWith === null ? texts.wallet : programPhrase(openedWith)
  const times = { first: firstUse(session), end: day(expiresAt) }
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${texts.walletUse}</small>
    <small>${usedAt === null ? texts.walletEnds(times) : texts.walletUsedEnds({ ...times, used: day(usedAt) })}</small>
  </div>
  ${accountForm(view, 'wallet-sessions', html`${hidden({ id: tokenHash })}<button class="small danger" aria-label="${texts.endWalletOf({ name })}">${texts.end}</button>`)}
</li>`
}

function sessionRow(view: AccountView, session: ListedSession): Html {
  const { id, rotatedAt, expiresAt, openedWith } = session
  const name = openedWith === null ? texts.app : programPhrase(openedWith)
  const times = { first: firstUse(session), end: day(expiresAt) }
  return html`
<li>
  <div class="body">
    <strong>${name}</strong>
    <small>${meansOf(session)}</small>
    <small>${rotatedAt === null ? texts.expires(times) : texts.usedExpires({ ...times, used: day(rotatedAt) })}</small>
  </div>
  ${accountForm(view, 'sessions', html`${hidden({ id })}<button class="small danger" aria-label="${texts.endOf({ name })}">${texts.end}</button>`)}
</li>`
}

function meansOf({ appPassword, byPassword }: ListedSession): Phrase {
  if (appPassword !== null) return texts.byAppPassword({ name: appPassword })
  return byPassword ? texts.byPassword : texts.byWallet
}

/** When and from which network the session was opened. */
function firstUse({ openedAt, openedFrom }: KnownOrigin): Phrase {
  if (openedAt === null) return texts.firstUnknown
  const first = day(openedAt)
  return openedFrom === null
    ? texts.firstUsed({ day: first })
    : texts.firstUsedFrom({ day: first, network: openedFrom })
}
