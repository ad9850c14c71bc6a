/** The forms of the account page that deactivate the account or delete it, and what each means. */
import { html, type Html } from '../../../http/html.ts'
import { accountForm, type AccountView } from './account-view.ts'
import { codeField, passwordField, type Fault } from '../page-parts/page-parts.ts'

export const deactivateForm = (view: AccountView): Html =>
  accountForm(
    view,
    'deactivate',
    html`
<p>Others no longer see your account, your posts or your pictures, and apps cannot post for you. Nothing is deleted. You stay signed in here, and can reactivate the account on this page at any time.</p>
<div><button class="danger">Deactivate account</button></div>`,
  )

const EFFECTS = html`
<p>Your posts and all other records, your pictures and videos, your settings and your sign-ins are deleted from this server at once. This cannot be undone, by the operator either; copies in backups go when those do.</p>
<p class="quiet">Your identity stays yours: with a key of your own you can use it on another server. What others have copied of your public posts is not under the control of this server. If you want to keep your data, download it first.</p>`

export const deleteForms = (view: AccountView, fault: Fault | null): Html => html`
${EFFECTS}
${
  view.account.email === null
    ? html`<p class="note">This requires a code by email, so add an email address first.</p>`
    : html`${accountForm(view, 'delete/code', html`<p class="quiet">We send a code to ${view.account.email}.</p><div><button>Request a code</button></div>`)}
${view.account.hasPassword ? confirmation(view, fault) : html`<p class="note">Your account has no password. Once you have the code, confirm the deletion in your wallet.</p>`}`
}`

const confirmation = (view: AccountView, fault: Fault | null): Html =>
  accountForm(
    view,
    'delete',
    html`
${codeField({ id: 'delete-code', label: 'Code for the deletion', fault })}
${passwordField({ id: 'delete-password', name: 'current', label: 'Password of this account', required: true, fault })}
<div><button class="danger">Delete account for ever</button></div>`,
  )
