/** The page on which a person looks after the account: who has access, and how to change what identifies it. */
import { html, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Context } from '../../platform/context.ts'
import { activityOf } from '../accounts/accounts.ts'
import { appHost, sentence, wordsOf } from '../oauth/oauth.ts'
import { accountDetails } from './account-details.ts'
import { accountForm, accountName, outcomeOf, type AccountView } from './account-view.ts'
import { day, field, hidden } from './page-parts.ts'

export function accountPage({ config }: Context, view: AccountView): Response {
  return page(config, {
    title: 'Your account',
    wide: true,
    status: view.outcome?.fault?.status,
    body: html`
${identity(view)}
${apps(view)}
${appPasswords(view)}
${sessions(view)}
${accountDetails(view)}`,
  })
}

function identity(view: AccountView): Html {
  const { account, device } = view
  const { status } = activityOf(account)
  const others = device.accounts.filter((signedIn) => signedIn.account.did !== account.did)
  const links = others.map((other) => html`<a href="/account?account=${encodeURIComponent(other.account.did)}">Switch to ${accountName(other.account)}</a> `)
  return html`
<section class="card" id="account">
  <div class="row">
    <div class="tight"><h1 class="name">${accountName(account)}</h1><code>${account.did}</code></div>
    ${accountForm(view, 'sign-out', html`<button class="small">Sign out</button>`)}
  </div>
  ${outcomeOf(view, 'account')}
  ${status && html`<p class="note warn">This account is ${status === 'deactivated' ? 'deactivated: others do not see it' : 'taken down'}.</p>`}
  <nav class="links" aria-label="On this page">
    <a href="#apps">Apps</a> <a href="#app-passwords">App passwords</a> <a href="#sessions">Sessions</a>
    <a href="#handle">Handle</a> <a href="#email">Email address</a> <a href="#password">Password</a>
  </nav>
  ${others.length > 0 && html`<p class="links">${links}<a href="/account/sign-in">Add an account</a></p>`}
</section>`
}

function apps(view: AccountView): Html {
  const rows = view.apps.map(
    (app) => html`
<li>
  <div class="body">
    <strong>${sentence(appHost(app.clientId))}</strong>
    <small>Since ${day(app.createdAt)}, last seen ${day(app.refreshedAt)}</small>
    <details><summary><small>What it may do</small></summary><ul>${app.scope.split(' ').map(scopeLine)}</ul></details>
  </div>
  ${accountForm(view, 'apps', html`${hidden({ id: app.id })}<button class="small danger" aria-label="End the access of ${appHost(app.clientId)}">End access</button>`)}
</li>`,
  )
  return html`
<section class="card" id="apps">
  <div class="tight"><h2>Apps with access</h2><p class="quiet">Apps that you have let in. Ending the access works at once.</p></div>
  ${outcomeOf(view, 'apps')}
  ${rows.length === 0 ? html`<p class="note">No app has access to your account.</p>` : html`<ul class="list">${rows}</ul>`}
</section>`
}

const scopeLine = (scope: string): Html => html`<li><small>${wordsOf({ scope, grants: [scope], title: null, detail: null }).what}</small></li>`

function appPasswords(view: AccountView): Html {
  const { secret, outcome } = view
  const rows = view.appPasswords.map(
    ({ name, createdAt, privileged }) => html`
<li>
  <div class="body"><strong>${name}</strong><small>Since ${day(createdAt)}${privileged && ', may read direct messages'}</small></div>
  ${accountForm(view, 'app-passwords/revoke', html`${hidden({ name })}<button class="small danger" aria-label="Revoke ${name}">Revoke</button>`)}
</li>`,
  )
  const own = outcome?.section === 'app-passwords' ? outcome : null
  return html`
<section class="card" id="app-passwords">
  <div class="tight"><h2>App passwords</h2><p class="quiet">For apps that cannot ask you on a page like this. They cannot change your account.</p></div>
  ${outcomeOf(view, 'app-passwords')}
  ${secret && secretNote(secret)}
  ${rows.length > 0 && html`<ul class="list">${rows}</ul>`}
  <details${own?.fault && html` open`}>
    <summary>New app password</summary>
    ${accountForm(
      view,
      'app-passwords',
      html`
    ${field({ id: 'app-password-name', name: 'name', label: 'Name', value: own?.typed?.get('name') ?? '', required: true, maxLength: 255, hint: 'So that you recognise it, such as the name of the app.', fault: own?.fault })}
    <label class="check"><input type="checkbox" name="privileged" value="yes"${own?.typed?.has('privileged') && html` checked`}><span>May read and send direct messages</span></label>
    <div><button>Create app password</button></div>`,
    )}
  </details>
</section>`
}

const secretNote = ({ name, password }: { name: string; password: string }): Html => html`
<div class="note good" role="status">
  <p>The app password “${name}”. It is shown this once, so copy it now:</p>
  <p class="secret">${password}</p>
</div>`

function sessions(view: AccountView): Html {
  const { otherBrowsers } = view
  const browsers = `${otherBrowsers} other ${otherBrowsers === 1 ? 'browser' : 'browsers'}`
  const rows = view.sessions.map(
    ({ id, appPassword, rotatedAt, expiresAt }) => html`
<li>
  <div class="body">
    <strong>${appPassword === null ? 'Signed in with your password' : `With the app password “${appPassword}”`}</strong>
    <small>${rotatedAt !== null && html`Last used ${day(rotatedAt)}, `}ends ${day(expiresAt)} unless it is used</small>
  </div>
  ${accountForm(view, 'sessions', html`${hidden({ id })}<button class="small danger">End</button>`)}
</li>`,
  )
  const browserRow = html`
<li>
  <div class="body"><strong>${browsers}</strong><small>signed in to this page</small></div>
  ${accountForm(view, 'browsers', html`<button class="small danger">Sign out there</button>`)}
</li>`
  return html`
<section class="card" id="sessions">
  <div class="tight"><h2>Sessions</h2><p class="quiet">Apps in which you have signed in with a password, and browsers that know you.</p></div>
  ${outcomeOf(view, 'sessions')}
  ${rows.length === 0 && otherBrowsers === 0 ? html`<p class="note">Only this browser.</p>` : html`<ul class="list">${otherBrowsers > 0 && browserRow}${rows}</ul>`}
</section>`
}
