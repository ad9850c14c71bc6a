/** The forms of the account page that deactivate the account or delete it, and what each means. */
import { html, type Html } from '../../../http/html.ts'
import { accountForm, type AccountView } from './account-view.ts'
import { detailsTexts as texts } from './details-texts.ts'
import { codeField, passwordField, type Fault } from '../page-parts/page-parts.ts'

export const deactivateForm = (view: AccountView): Html =>
  accountForm(
    view,
    'deactivate',
    html`
<p>${texts.deactivateMeans}</p>
<div><button class="danger">${texts.deactivate}</button></div>`,
  )

const EFFECTS = html`
<p>${texts.deleteMeans}</p>
<p class="quiet">${texts.deleteLeaves}</p>`

export const deleteForms = (view: AccountView, fault: Fault | null): Html => html`
${EFFECTS}
${
  view.account.email === null
    ? html`<p class="note">${texts.needsEmail}</p>`
    : html`${accountForm(view, 'delete/code', html`<p class="quiet">${texts.codeSentTo({ email: view.account.email })}</p><div><button>${texts.requestCode}</button></div>`)}
${view.account.hasPassword ? confirmation(view, fault) : html`<p class="note">${texts.deleteByWallet}</p>`}`
}`

const confirmation = (view: AccountView, fault: Fault | null): Html =>
  accountForm(
    view,
    'delete',
    html`
${codeField({ id: 'delete-code', label: texts.deleteCode, fault })}
${passwordField({ id: 'delete-password', name: 'current', label: texts.deletePassword, required: true, fault })}
<div><button class="danger">${texts.deleteForEver}</button></div>`,
  )
