/** The section of the account page that changes handle, email address and password. */
import { html, type Html } from '../../../http/html.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { KeptArchives } from '../../data/account-archives/account-archives.ts'
import { accountForm, accountName, outcomeOf, type AccountView, type Section } from './account-view.ts'
import { importUrl } from './import-page.ts'
import { identityUrl } from './identity-page.ts'
import { deactivateForm, deleteForms } from './leaving-part.ts'
import { moveAwayUrl } from './move-away-page.ts'
import { codeField, field, hidden, newPasswordField, passwordField } from '../page-parts/page-parts.ts'

export function accountDetails(view: AccountView): Html {
  const { account, storage } = view
  const { used, quota } = storage
  const { email, emailConfirmedAt } = account
  return html`
<section class="card" id="details">
  <h2>Account details</h2>
  <dl class="facts">
    <div><dt>Handle</dt><dd>${accountName(account)}</dd></div>
    ${view.furtherHandles.length > 0 && html`<div><dt>Further handles</dt><dd>${view.furtherHandles.map((handle) => html`@${handle} `)}</dd></div>`}
    <div><dt>Email address</dt><dd>${email ?? 'none'} ${email !== null && html`<small>(${emailConfirmedAt === null && 'not '}confirmed)</small>`}</dd></div>
    <div><dt>Stored</dt><dd>${inUse('records', used.records, quota.records)}, ${inUse('MB of media', used.blobBytes, quota.blobBytes, 1e6)}</dd></div>
    <div><dt>Records</dt><dd><a href="/account/data?${new URLSearchParams({ account: account.did }).toString()}">Look at your data</a></dd></div>
    <div><dt>Identity</dt><dd><a href="${identityUrl(account.did)}">Who can move this account</a></dd></div>
    <div><dt>Server</dt><dd><a href="${moveAwayUrl(account.did)}">Move to another server</a></dd></div>
  </dl>
  ${folded(view, 'handle', 'Change handle', handleForm(view))}
  ${folded(view, 'handles', 'Further handles', furtherHandles(view))}
  ${email !== null && (emailConfirmedAt === null || view.outcome?.section === 'confirm-email') && folded(view, 'confirm-email', 'Confirm email address', confirmForms(view, email))}
  ${folded(view, 'email', 'Change email address', emailForm(view))}
  ${account.hasPassword ? folded(view, 'password', 'Change password', passwordForm(view)) : folded(view, 'password', 'Set a password', firstPassword(email))}
  ${folded(view, 'archive', 'Download your data', archiveForm(view))}
  ${activityOf(account).active && folded(view, 'deactivate', 'Deactivate account', deactivateForm(view))}
  ${account.takedownRef === null && folded(view, 'delete', 'Delete account', deleteForms(view, sent(view, 'delete').fault))}
</section>`
}

/** The amount in use, and the quota if there is one: `12.5 of 1,000 MB of media`. */
function inUse(unit: string, used: number, quota: number, size = 1): string {
  const amount = (count: number) => (count / size).toLocaleString('en', { maximumFractionDigits: 1 })
  return quota === 0 ? `${amount(used)} ${unit}` : `${amount(used)} of ${amount(quota)} ${unit}`
}

/** Open if the form was just sent. The id is inside, so that a browser unfolds it when the URL names it. */
const folded = (view: AccountView, section: Section, summary: string, form: Html): Html => html`
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
  label: 'New handle',
  value: typed?.get('handle') ?? '',
  required: true,
  hint: 'A name on this server, or your own domain. For a domain, we show you what to publish.',
  fault,
})}
<div><button>Change handle</button></div>`,
  )
}

function furtherHandles(view: AccountView): Html {
  const { typed, fault } = sent(view, 'handles')
  const rows = view.furtherHandles.map(
    (handle) => html`
<li>
  <div class="body"><strong>@${handle}</strong></div>
  ${accountForm(view, 'handles/remove', html`${hidden({ handle })}<button class="small danger" aria-label="Remove ${handle}">Remove</button>`)}
</li>`,
  )
  return html`
<p>Further handles on this server lead to your account too. Others see the first one. When you change the first one, these stay.</p>
${rows.length > 0 && html`<ul class="list">${rows}</ul>`}
${accountForm(
  view,
  'handles',
  html`
${field({ id: 'further-handle', name: 'handle', label: 'Further handle', value: typed?.get('handle') ?? '', required: true, maxLength: 253, hint: 'A name on this server.', fault })}
<div><button>Add handle</button></div>`,
)}`
}

/** The form includes the address that the page shows, so the code cannot confirm another one that was set meanwhile. */
function confirmForms(view: AccountView, email: string): Html {
  const { typed, fault } = sent(view, 'confirm-email')
  const ask = html`
<p class="quiet">We send a code to ${email}. ${view.account.hasPassword ? 'If you forget your password, a confirmed address lets you set a new one.' : 'Codes to delete or recover your account go to this address too.'}</p>
<div><button>Send a code</button></div>`
  const answer = html`
${hidden({ email })}
${codeField({ id: 'confirm-code', value: typed?.get('code') ?? '', fault })}
<div><button>Confirm email address</button></div>`
  return html`${accountForm(view, 'email/code', ask)}${accountForm(view, 'email/confirm', answer)}`
}

function emailForm(view: AccountView): Html {
  const { typed, fault } = sent(view, 'email')
  const awaitsCode =
    view.awaitsEmailCode &&
    codeField({
      id: 'email-code',
      hint: 'We have sent it to your current address.',
      value: typed?.get('code') ?? '',
      fault,
    })
  return accountForm(
    view,
    'email',
    html`
${field({ id: 'new-email', name: 'email', label: 'New email address', type: 'email', value: typed?.get('email') ?? '', autocomplete: 'email', required: true, fault })}
${awaitsCode}
${view.account.hasPassword && passwordField({ id: 'email-password', name: 'current', label: 'Your password', required: true, fault })}
<div><button>Change email address</button></div>`,
  )
}

function passwordForm(view: AccountView): Html {
  const { fault } = sent(view, 'password')
  return accountForm(
    view,
    'password',
    html`
<input type="hidden" autocomplete="username" value="${view.account.handle ?? view.account.did}">
${passwordField({ id: 'current-password', name: 'current', label: 'Current password', required: true, fault })}
${newPasswordField({ id: 'new-password', name: 'next', fault: fault?.field === 'password' ? { ...fault, field: 'next' } : fault })}
<p class="note warn">This signs you out everywhere else. Apps that you have authorized keep their access until you end it above.</p>
<div><button>Change password</button></div>`,
  )
}

const archiveForm = (view: AccountView): Html => html`
${accountForm(
  view,
  'archive',
  html`
<p>One file with your posts and all other records, your images and videos, your preferences, and tables that you can open in a spreadsheet. You can keep it as a copy, or move to another server with it.</p>
<p class="quiet">The file is private: do not hand it on. It has no password in it. For a large account it takes a moment until the download begins.</p>
<div><button>Download</button></div>`,
)}
${view.keptArchives && keptPart(view, view.keptArchives)}
<p class="links"><a href="${importUrl(view.account.did)}">Restore your account from an archive</a></p>`

const frequencies = { never: 'Never', weekly: 'Every week', monthly: 'Every month' } as const

function keptPart(view: AccountView, { every, archives }: KeptArchives): Html {
  const options = Object.entries(frequencies).map(
    ([value, label]) =>
      html`<option value="${value}"${value === (every ?? 'never') && html` selected`}>${label}</option>`,
  )
  const rows = archives.map(
    ({ name, size }) => html`
<li>
  <div class="body"><strong>${name.slice(0, 10)}</strong><small>${Math.ceil(size / 1024 ** 2)} MiB</small></div>
  ${accountForm(view, 'archive/kept', html`${hidden({ name })}<button class="small" aria-label="Download the archive of ${name.slice(0, 10)}">Download</button>`)}
</li>`,
  )
  return html`
${accountForm(
  view,
  'archive/schedule',
  html`
<label for="archive-every">Have one made regularly</label>
<select id="archive-every" name="every">${options}</select>
<p class="quiet">The server keeps the newest ones here, and mails you when there is a new one.</p>
<div><button>Save</button></div>`,
)}
${rows.length > 0 && html`<ul class="list">${rows}</ul>`}`
}

/** An account without a password gets one like a forgotten one, so that the address is known to work. */
const firstPassword = (email: string | null): Html => html`
<p>Your account has no password: you sign in with your wallet.</p>
<p class="quiet">With a password you can also sign in without the wallet, and so can anyone who learns the password or reads your mail. The password opens your account here; the key in your wallet still controls your identity.</p>
<p class="note warn">Setting one signs you out everywhere and ends the access of all apps. A password can be changed later but not removed.</p>
${
  email === null
    ? html`<p class="quiet">This requires a code by email, so add an email address first.</p>`
    : html`<p class="links"><a href="/account/reset-password">Have a code sent to ${email}</a></p>`
}`
