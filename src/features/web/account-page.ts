/** The page on which a person looks after the account: who has access, and how to change what identifies it. */
import { html, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Context } from '../../platform/context.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { activityOf, type Account } from '../accounts/accounts.ts'
import type { AppPassword } from '../auth/auth.ts'
import { appHost, sentence, wordsOf, type OAuthSession } from '../oauth/oauth.ts'
import type { Device } from './devices.ts'
import { day, errorNote, field, goodNote, passwordField } from './page-parts.ts'

export type Section = 'apps' | 'app-passwords' | 'sessions' | 'handle' | 'email' | 'password'

export interface AccountView {
  account: Account
  device: Device
  apps: readonly OAuthSession[]
  appPasswords: readonly AppPassword[]
  sessions: readonly OwnSession[]
  otherBrowsers: number
  /** What happened to the form that was sent. */
  outcome: { section: Section; fault: string | null; notice: string | null } | null
  /** An app password that was just made; shown this once. */
  secret: { name: string; password: string } | null
  /** A code was mailed with which the email address may be changed. */
  awaitsEmailCode: boolean
}

export interface OwnSession {
  id: string
  appPassword: string | null
  rotatedAt: Millis | null
  expiresAt: Millis
}

export function accountPage({ config }: Context, view: AccountView): Response {
  const { account, device, outcome } = view
  const form = (action: string, content: Html): Html =>
    html`<form method="post" action="/account/${action}" class="stack"><input type="hidden" name="form_token" value="${device.formToken}"><input type="hidden" name="account" value="${account.did}">${content}</form>`
  const outcomeOf = (section: Section): Html | null => (outcome?.section === section ? html`${errorNote(outcome.fault)}${goodNote(outcome.notice)}` : null)
  return page(config, {
    title: 'Your account',
    wide: true,
    status: outcome?.fault ? 400 : 200,
    body: html`${identity(view, form)}
${apps(view, form, outcomeOf('apps'))}
${appPasswords(view, form, outcomeOf('app-passwords'))}
${sessions(view, form, outcomeOf('sessions'))}
${details(view, form, outcomeOf)}`,
  })
}

type FormOf = (action: string, content: Html) => Html

const name = ({ handle, did }: Account) => (handle === null ? did : `@${handle}`)

function identity({ account, device }: AccountView, form: FormOf): Html {
  const others = device.accounts.filter((signedIn) => signedIn.account.did !== account.did)
  const { status } = activityOf(account)
  return html`<section class="card">
<div class="row"><div class="tight"><h1>${name(account)}</h1><code>${account.did}</code></div>${form('sign-out', html`<button class="small">Sign out</button>`)}</div>
${status && html`<p class="note warn">This account is ${status === 'deactivated' ? 'deactivated: others do not see it' : 'taken down'}.</p>`}
${others.length > 0 && html`<p class="links">${others.map((other) => html`<a href="/account?account=${encodeURIComponent(other.account.did)}">Switch to ${name(other.account)}</a> `)}<a href="/account/sign-in">Add an account</a></p>`}
</section>`
}

function apps({ apps }: AccountView, form: FormOf, outcome: Html | null): Html {
  return html`<section class="card" id="apps"><div class="tight"><h2>Apps with access</h2><p class="quiet">Apps that you have let in. Ending the access works at once.</p></div>
${outcome}
${
    apps.length === 0
      ? html`<p class="note">No app has access to your account.</p>`
      : html`<ul class="list">${apps.map(
          (app) => html`<li><div class="body"><strong>${sentence(appHost(app.clientId))}</strong>
<small>Since ${day(app.createdAt)}, last seen ${day(app.refreshedAt)}</small>
<details><summary><small>What it may do</small></summary><ul>${app.scope.split(' ').map((scope) => html`<li><small>${wordsOf({ scope, grants: [scope], title: null, detail: null }).what}</small></li>`)}</ul></details></div>
${form('apps', html`<input type="hidden" name="id" value="${app.id}"><button class="small danger" aria-label="End the access of ${appHost(app.clientId)}">End access</button>`)}</li>`,
        )}</ul>`
  }</section>`
}

function appPasswords({ appPasswords, secret }: AccountView, form: FormOf, outcome: Html | null): Html {
  return html`<section class="card" id="app-passwords"><div class="tight"><h2>App passwords</h2><p class="quiet">For apps that cannot ask you on a page like this. They cannot change your account.</p></div>
${outcome}
${secret && html`<div class="note good" role="status"><p>The app password “${secret.name}”. It is shown this once, so copy it now:</p><p class="secret">${secret.password}</p></div>`}
${
    appPasswords.length > 0 &&
    html`<ul class="list">${appPasswords.map(
      (one) => html`<li><div class="body"><strong>${one.name}</strong><small>Since ${day(one.createdAt)}${one.privileged ? ', may read direct messages' : ''}</small></div>
${form('app-passwords/revoke', html`<input type="hidden" name="name" value="${one.name}"><button class="small danger" aria-label="Revoke ${one.name}">Revoke</button>`)}</li>`,
    )}</ul>`
  }
<details${outcome && html` open`}><summary>New app password</summary>${form(
    'app-passwords',
    html`${field({ name: 'name', label: 'Name', required: true, hint: 'So that you recognise it, such as the name of the app.' })}
<label class="check"><input type="checkbox" name="privileged" value="yes"><span>May read and send direct messages</span></label>
<div><button>Create app password</button></div>`,
  )}</details></section>`
}

function sessions({ sessions, otherBrowsers }: AccountView, form: FormOf, outcome: Html | null): Html {
  const browsers = `${otherBrowsers} other ${otherBrowsers === 1 ? 'browser' : 'browsers'}`
  return html`<section class="card" id="sessions"><div class="tight"><h2>Sessions</h2><p class="quiet">Apps in which you have signed in with a password, and browsers that know you.</p></div>
${outcome}
${
    sessions.length === 0 && otherBrowsers === 0
      ? html`<p class="note">Only this browser.</p>`
      : html`<ul class="list">${
          otherBrowsers > 0 &&
          html`<li><div class="body"><strong>${browsers}</strong><small>signed in to this page</small></div>${form('browsers', html`<button class="small danger">Sign out there</button>`)}</li>`
        }${sessions.map(
          (one) => html`<li><div class="body"><strong>${one.appPassword === null ? 'Signed in with your password' : `With the app password “${one.appPassword}”`}</strong>
<small>${one.rotatedAt !== null && html`Last used ${day(one.rotatedAt)}, `}ends ${day(one.expiresAt)} unless it is used</small></div>
${form('sessions', html`<input type="hidden" name="id" value="${one.id}"><button class="small danger">End</button>`)}</li>`,
        )}</ul>`
  }</section>`
}

function details({ account, awaitsEmailCode, outcome }: AccountView, form: FormOf, outcomeOf: (section: Section) => Html | null): Html {
  const isOpen = (section: Section) => outcome?.section === section && html` open`
  return html`<section class="card" id="details"><h2>Account details</h2>
<dl class="facts"><div><dt>Handle</dt><dd>${name(account)}</dd></div>
<div><dt>Email address</dt><dd>${account.email ?? 'none'}${account.email !== null && (account.emailConfirmedAt === null ? html` <small>(not confirmed)</small>` : html` <small>(confirmed)</small>`)}</dd></div></dl>
<details${isOpen('handle')}><summary>Change handle</summary>${outcomeOf('handle')}${form(
    'handle',
    html`${field({ name: 'handle', label: 'New handle', required: true, hint: 'One of ours, or a domain name of your own that points to your account.' })}<div><button>Change handle</button></div>`,
  )}</details>
<details${isOpen('email')}><summary>Change email address</summary>${outcomeOf('email')}${form(
    'email',
    html`${field({ name: 'email', label: 'New email address', type: 'email', autocomplete: 'email', required: true })}
${awaitsEmailCode && field({ name: 'code', label: 'Code from the email', autocomplete: 'one-time-code', required: true, hint: 'We have sent it to the address that you have now.' })}
${passwordField({ label: 'Your password', required: true })}<div><button>Change email address</button></div>`,
  )}</details>
${
    account.hasPassword &&
    html`<details${isOpen('password')}><summary>Change password</summary>${outcomeOf('password')}${form(
      'password',
      html`${passwordField({ name: 'current', label: 'Current password', required: true })}
${passwordField({ name: 'next', label: 'New password', autocomplete: 'new-password', required: true })}
<p class="note warn">This signs you out everywhere else. Apps that you have let in keep their access until you end it above.</p><div><button>Change password</button></div>`,
    )}</details>`
  }</section>`
}
