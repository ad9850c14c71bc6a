/** The section of the account page that changes handle, email address and password. */
import { html, type Html, type Phrase, type Wording } from '../../../http/html.ts'
import { dayPhrase, sizePhrase } from '../../../http/texts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { KeptArchives } from '../../data/account-archives/account-archives.ts'
import { accountForm, outcomeOf, type AccountView, type Section } from './account-view.ts'
import { detailsTexts as texts } from './details-texts.ts'
import { importUrl } from './import-page.ts'
import { identityUrl } from './identity-page.ts'
import { deactivateForm, deleteForms } from './leaving-part.ts'
import { moveAwayUrl } from './move-away-page.ts'
import { accountName, codeField, field, hidden, newPasswordField, passwordField } from '../page-parts/page-parts.ts'

export function accountDetails(view: AccountView): Html {
  const { account } = view
  const { email, emailConfirmedAt } = account
  return html`
<section class="card" id="details">
  <h2>${texts.title}</h2>
  <dl class="facts">
    <div><dt>${texts.handle}</dt><dd>${accountName(account)}</dd></div>
    ${view.furtherHandles.length > 0 && html`<div><dt>${texts.furtherHandles}</dt><dd>${view.furtherHandles.map((handle) => html`@${handle} `)}</dd></div>`}
    <div><dt>${texts.email}</dt><dd>${email ?? texts.noEmail} ${email !== null && html`<small>${emailConfirmedAt === null ? texts.notConfirmed : texts.confirmed}</small>`}</dd></div>
    <div><dt>${texts.stored}</dt><dd>${inUse(view.storage)}</dd></div>
    <div><dt>${texts.records}</dt><dd><a href="/account/data?${new URLSearchParams({ account: account.did }).toString()}">${texts.lookAtData}</a></dd></div>
    <div><dt>${texts.identity}</dt><dd><a href="${identityUrl(account.did)}">${texts.whoCanMove}</a></dd></div>
    <div><dt>${texts.server}</dt><dd><a href="${moveAwayUrl(account.did)}">${texts.moveAway}</a></dd></div>
  </dl>
  ${folded(view, 'handle', texts.changeHandle, handleForm(view))}
  ${folded(view, 'handles', texts.furtherHandles, furtherHandles(view))}
  ${email !== null && (emailConfirmedAt === null || view.outcome?.section === 'confirm-email') && folded(view, 'confirm-email', texts.confirmEmail, confirmForms(view, email))}
  ${folded(view, 'email', texts.changeEmail, emailForm(view))}
  ${account.hasPassword ? folded(view, 'password', texts.changePassword, passwordForm(view)) : folded(view, 'password', texts.setPassword, firstPassword(email))}
  ${folded(view, 'archive', texts.download, archiveForm(view))}
  ${activityOf(account).active && folded(view, 'deactivate', texts.deactivate, deactivateForm(view))}
  ${account.takedownRef === null && folded(view, 'delete', texts.delete, deleteForms(view, sent(view, 'delete').fault))}
</section>`
}

/** The amounts in use, and the quotas if there are any: `3 records, 12.5 of 1,000 MB of media`. */
function inUse({ used, quota }: AccountView['storage']): Phrase {
  const records =
    quota.records === 0
      ? texts.storedRecords({ count: used.records })
      : texts.storedRecordsOf({ used: used.records, count: quota.records })
  const media =
    quota.blobBytes === 0
      ? texts.storedMedia({ used: megabytes(used.blobBytes) })
      : texts.storedMediaOf({ used: megabytes(used.blobBytes), quota: megabytes(quota.blobBytes) })
  return texts.storedBoth({ records, media })
}

const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10

/**
 * A form, folded away unless it was just sent. The id is inside the folded part, so that a browser unfolds it when the
 * URL names it.
 */
const folded = (view: AccountView, section: Section, summary: Wording, form: Html): Html => html`
<details${view.outcome?.section === section && html` open`}>
  <summary>${summary}</summary>
  <div id="${section}" class="stack">${outcomeOf(view, section)}${form}</div>
</details>`

/** The input of a section's form, and what is wrong with it; nulls unless that form was just sent. */
const sent = ({ outcome }: AccountView, section: Section) =>
  outcome?.section === section ? outcome : { typed: null, fault: null }

function handleForm(view: AccountView): Html {
  const { typed, fault } = sent(view, 'handle')
  return accountForm(
    view,
    'handle',
    html`
${field({
  id: 'new-handle',
  name: 'handle',
  label: texts.newHandle,
  value: typed?.get('handle') ?? '',
  required: true,
  hint: texts.newHandleHint,
  fault,
})}
<div><button>${texts.changeHandle}</button></div>`,
  )
}

function furtherHandles(view: AccountView): Html {
  const { typed, fault } = sent(view, 'handles')
  const rows = view.furtherHandles.map(
    (handle) => html`
<li>
  <div class="body"><strong>@${handle}</strong></div>
  ${accountForm(view, 'handles/remove', html`${hidden({ handle })}<button class="small danger" aria-label="${texts.removeOf({ handle })}">${texts.remove}</button>`)}
</li>`,
  )
  return html`
<p>${texts.furtherLead}</p>
${rows.length > 0 && html`<ul class="list">${rows}</ul>`}
${accountForm(
  view,
  'handles',
  html`
${field({ id: 'further-handle', name: 'handle', label: texts.furtherHandle, value: typed?.get('handle') ?? '', required: true, maxLength: 253, hint: texts.furtherHint, fault })}
<div><button>${texts.addHandle}</button></div>`,
)}`
}

/**
 * The form includes the address that the page shows, so the code cannot confirm another address that was set meanwhile.
 */
function confirmForms(view: AccountView, email: string): Html {
  const { typed, fault } = sent(view, 'confirm-email')
  const ask = html`
<p class="quiet">${view.account.hasPassword ? texts.confirmUse({ email }) : texts.confirmUseWallet({ email })}</p>
<div><button>${texts.sendCode}</button></div>`
  const answer = html`
${hidden({ email })}
${codeField({ id: 'confirm-code', value: typed?.get('code') ?? '', fault })}
<div><button>${texts.confirmEmail}</button></div>`
  return html`${accountForm(view, 'email/code', ask)}${accountForm(view, 'email/confirm', answer)}`
}

function emailForm(view: AccountView): Html {
  const { typed, fault } = sent(view, 'email')
  const awaitsCode =
    view.awaitsEmailCode &&
    codeField({
      id: 'email-code',
      hint: texts.emailCodeHint,
      value: typed?.get('code') ?? '',
      fault,
    })
  return accountForm(
    view,
    'email',
    html`
${field({ id: 'new-email', name: 'email', label: texts.newEmail, type: 'email', value: typed?.get('email') ?? '', autocomplete: 'email', required: true, fault })}
${awaitsCode}
${view.account.hasPassword && passwordField({ id: 'email-password', name: 'current', label: texts.yourPassword, required: true, fault })}
<div><button>${texts.changeEmail}</button></div>`,
  )
}

function passwordForm(view: AccountView): Html {
  const { fault } = sent(view, 'password')
  return accountForm(
    view,
    'password',
    html`
<input type="hidden" autocomplete="username" value="${view.account.handle ?? view.account.did}">
${passwordField({ id: 'current-password', name: 'current', label: texts.currentPassword, required: true, fault })}
${newPasswordField({ id: 'new-password', name: 'next', fault: fault?.field === 'password' ? { ...fault, field: 'next' } : fault })}
<p class="note warn">${texts.passwordEffect}</p>
<div><button>${texts.changePassword}</button></div>`,
  )
}

const archiveForm = (view: AccountView): Html => html`
${accountForm(
  view,
  'archive',
  html`
<p>${texts.archiveLead}</p>
<p class="quiet">${texts.archivePrivate}</p>
<div><button>${texts.downloadNow}</button></div>`,
)}
${view.keptArchives && keptPart(view, view.keptArchives)}
<p class="links"><a href="${importUrl(view.account.did)}">${texts.restore}</a></p>`

const frequencies = ['never', 'weekly', 'monthly'] as const

function keptPart(view: AccountView, { every, archives }: KeptArchives): Html {
  const options = frequencies.map(
    (value) =>
      html`<option value="${value}"${value === (every ?? 'never') && html` selected`}>${texts[value]}</option>`,
  )
  const rows = archives.map(({ name, size }) => {
    const day = dayPhrase(Date.parse(name.slice(0, 10)))
    return html`
<li>
  <div class="body"><strong>${day}</strong><small>${sizePhrase(size)}</small></div>
  ${accountForm(view, 'archive/kept', html`${hidden({ name })}<button class="small" aria-label="${texts.downloadOf({ day })}">${texts.downloadNow}</button>`)}
</li>`
  })
  return html`
${accountForm(
  view,
  'archive/schedule',
  html`
<label for="archive-every">${texts.regularly}</label>
<select id="archive-every" name="every">${options}</select>
<p class="quiet">${texts.regularlyMeans}</p>
<div><button>${texts.save}</button></div>`,
)}
${rows.length > 0 && html`<ul class="list">${rows}</ul>`}`
}

/**
 * An account without a password sets its first one with a mailed code, like a forgotten one, so that the address is
 * known to work.
 */
const firstPassword = (email: string | null): Html => html`
<p>${texts.noPassword}</p>
<p class="quiet">${texts.noPasswordMeans}</p>
<p class="note warn">${texts.firstPasswordEffect}</p>
${
  email === null
    ? html`<p class="quiet">${texts.needsEmail}</p>`
    : html`<p class="links"><a href="/account/reset-password">${texts.codeTo({ email })}</a></p>`
}`
