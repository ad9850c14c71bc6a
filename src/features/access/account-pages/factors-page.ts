/**
 * The page on which people manage their second factors. A change requires what a sign-in requires: the password, and a
 * factor if there is one, so that a stolen session cannot change factors.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import {
  addPasskey,
  beginPasskey,
  beginTotp,
  confirmTotp,
  deleteTrustedBrowser,
  factorsOf,
  removePasskey,
  removeTotp,
  renamePasskey,
  renewRecoveryCodes,
  setEmailFactor,
  type ListedFactors,
} from '../factors/factors.ts'
import { holderForm, holderPage, holderUrl, withPassword, type EnterPage, type Holder } from '../pages/pages.ts'
import {
  accountName,
  codeField,
  day,
  errorNote,
  faultOf,
  goodNote,
  hidden,
  pageRefusal,
  passkeyAnswer,
  passwordField,
  qrCode,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { accountForm, accountUrl, type AccountView } from './account-view.ts'
import { newPasskeyPage, passkeysPart, usedWords } from './passkeys-part.ts'
import { factorsTexts as texts } from './factors-texts.ts'

const PATH = '/account/factors'
const urlOf = ({ did }: Account, more: Record<string, string> = {}): string => holderUrl(PATH, did, more)

// On the account page

/** The section of the account page. Accounts without a password sign in with a wallet, which needs no second factor. */
export const factorsPart = ({ account, factors }: AccountView): Html | null =>
  !account.hasPassword
    ? null
    : html`
<section class="card" id="factors">
  <div class="tight">
    <h2>${texts.heading}</h2>
    <p class="quiet">${texts.lead}</p>
  </div>
  <p>${stateOf(factors)}</p>
  <p class="links"><a href="${urlOf(account)}">${texts.change}</a></p>
</section>`

/** Says what opens the account now. */
function stateOf({ totp, passkeys, emailAuthFactor, recoveryCodes }: ListedFactors): Html {
  const isHeld = totp !== null || passkeys.length > 0
  const held = passkeys.length === 0 ? texts.byApp : totp === null ? texts.byPasskey : texts.byPasskeyOrApp
  return isHeld
    ? html`${held} ${texts.codesLeft({ count: recoveryCodes })}`
    : html`${emailAuthFactor ? texts.byMail : texts.byPassword}`
}

// The page

interface Shown {
  fault?: Fault | null
  notice?: Wording | null
}

async function factorsPage(
  call: PageCall,
  holder: Holder,
  { fault = null, notice = null }: Shown = {},
): Promise<Response> {
  const { account } = holder
  const factors = await factorsOf(call.ctx, account)
  return page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1>${texts.title}</h1>
    <p><strong>${accountName(account)}</strong></p>
    <p class="quiet">${stateOf(factors)}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  <p class="note">${texts.appPasswords}</p>
  <p class="links"><a href="${accountUrl(account.did)}">${texts.back}</a></p>
</section>
${passkeysPart(holder, factors)}
${totpPart(holder, factors)}
${recoveryPart(holder, factors)}
${mailPart(holder, factors)}
${trustedPart(holder, factors)}`,
  })
}

const changeForm = (holder: Holder, change: Change, button: Html): Html =>
  accountForm(holder, 'factors', html`${hidden({ change })}<div>${button}</div>`)

function totpPart(holder: Holder, { totp }: ListedFactors): Html {
  const use = html`
  <h2>${texts.app}</h2>
  <p class="quiet">${texts.appLead}</p>`
  if (totp === null)
    return html`
<section class="card">
  <div class="tight">${use}</div>
  ${changeForm(holder, 'add-app', html`<button class="primary">${texts.addApp}</button>`)}
</section>`
  return html`
<section class="card">
  <div class="tight">${use}</div>
  <p>${usedWords(totp.confirmedAt, totp.lastUsedAt)}</p>
  ${changeForm(holder, 'remove-app', html`<button class="danger">${texts.removeApp}</button>`)}
</section>`
}

const recoveryPart = (holder: Holder, { totp, passkeys, recoveryCodes }: ListedFactors): Html | null =>
  totp === null && passkeys.length === 0
    ? null
    : html`
<section class="card">
  <div class="tight">
    <h2>${texts.codes}</h2>
    <p class="quiet">${texts.codesLead} ${texts.codesLeft({ count: recoveryCodes })}</p>
  </div>
  ${changeForm(holder, 'new-codes', html`<button>${texts.newCodes}</button>`)}
</section>`

function mailPart(holder: Holder, { totp, passkeys, emailAuthFactor }: ListedFactors): Html {
  const { emailConfirmedAt, did } = holder.account
  const choice =
    emailConfirmedAt === null
      ? html`<p class="note">${texts.needsConfirmed({ confirm: (content) => html`<a href="${accountUrl(did)}#confirm-email">${content}</a>` })}</p>`
      : emailAuthFactor
        ? changeForm(holder, 'mail-off', html`<button class="danger">${texts.mailOff}</button>`)
        : changeForm(holder, 'mail-on', html`<button>${texts.mailOn}</button>`)
  return html`
<section class="card">
  <div class="tight">
    <h2>${texts.mail}</h2>
    <p class="quiet">${texts.mailLead} ${(totp !== null || passkeys.length > 0) && texts.mailReplaced}</p>
  </div>
  ${choice}
</section>`
}

function trustedPart(holder: Holder, { trusted }: ListedFactors): Html | null {
  if (trusted.length === 0) return null
  const rows = trusted.map(({ tokenHash, trustedAt, expiresAt, openedWith, openedFrom }) => {
    const name = openedWith === null ? texts.browser : programPhrase(openedWith)
    const period = { from: day(trustedAt), until: day(expiresAt) }
    return html`
<li>
  <div class="body"><strong>${name}</strong><small>${openedFrom === null ? texts.since(period) : texts.sinceNetwork({ ...period, network: openedFrom })}</small></div>
  ${accountForm(holder, 'factors', html`${hidden({ change: 'distrust', id: tokenHash })}<button class="small danger" aria-label="${texts.distrustOf({ name })}">${texts.distrust}</button>`)}
</li>`
  })
  return html`
<section class="card">
  <div class="tight"><h2>${texts.trusted}</h2><p class="quiet">${texts.trustedLead}</p></div>
  <ul class="list">${rows}</ul>
</section>`
}

// Changes

type Change = 'add-passkey' | 'remove-passkey' | 'add-app' | 'remove-app' | 'new-codes' | 'mail-on' | 'mail-off'

interface Work {
  /** Says what is going to happen, above the field for the password. */
  question: Wording
  submit: Wording
  /** Makes the change. `id` is the id in the form, if any. Returns a page, or the name of the notice of success. */
  perform(call: PageCall, holder: Holder, revalidate: EnterPage, id: string): Promise<Response | string>
}

const changes: Readonly<Record<Change, Work>> = {
  'add-passkey': {
    question: texts.addPasskey,
    submit: texts.proceed,
    perform: (call, holder, revalidate) => showNewPasskey(call, holder, revalidate, null),
  },
  'remove-passkey': {
    question: texts.removePasskey,
    submit: texts.removePasskeySubmit,
    async perform(call, { account }, revalidate, id) {
      await removePasskey(call, account.did, id, revalidate)
      return 'passkey-removed'
    },
  },
  'add-app': {
    question: texts.addApp,
    submit: texts.proceed,
    async perform(call, holder, revalidate) {
      const { uri, secret } = await beginTotp(call.ctx, holder.account, revalidate)
      return setUpPage(call, holder, { uri, secret, fault: null })
    },
  },
  'remove-app': {
    question: texts.removeAppQuestion,
    submit: texts.removeApp,
    async perform(call, { account }, revalidate) {
      await removeTotp(call, account.did, revalidate)
      return 'app-removed'
    },
  },
  'new-codes': {
    question: texts.newCodes,
    submit: texts.newCodesSubmit,
    perform: async (call, holder, revalidate) =>
      codesPage(call, holder, await renewRecoveryCodes(call, holder.account.did, revalidate)),
  },
  'mail-on': {
    question: texts.mailOn,
    submit: texts.turnOn,
    async perform(call, { account }, revalidate) {
      await setEmailFactor(call, account.did, true, { revalidate })
      return 'mail-on'
    },
  },
  'mail-off': {
    question: texts.mailOff,
    submit: texts.turnOff,
    async perform(call, { account }, revalidate) {
      await setEmailFactor(call, account.did, false, { revalidate })
      return 'mail-off'
    },
  },
}

const isChange = (name: string): name is Change => Object.hasOwn(changes, name)

const notices = new Map<string, Wording>([
  ['passkey-added', texts.passkeyWasAdded],
  ['passkey-renamed', texts.passkeyWasRenamed],
  ['passkey-removed', texts.passkeyWasRemoved],
  ['app-added', texts.appWasAdded],
  ['app-removed', texts.appWasRemoved],
  ['distrusted', texts.wasDistrusted],
  ['mail-on', texts.mailIsOn],
  ['mail-off', texts.mailIsOff],
])

async function change(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response> {
  const name = form.get('change') ?? ''
  const simple = Object.hasOwn(simpleChanges, name) ? simpleChanges[name] : undefined
  if (simple !== undefined) return simple(call, holder, form)
  if (!isChange(name)) throw pageRefusal('The form names no change.')
  const { account } = holder
  if (!form.has('password') && !form.has('factor_step')) return provePage(call, holder, form, null)
  const again = async (fault: Fault) => provePage(call, holder, form, fault)
  const limited = await faultOf(() => charge(call, 'createSession'))
  if (limited) return again(limited)
  return withPassword(call, form, {
    identifier: account.did,
    isProof: true,
    again,
    async act(proven, revalidate) {
      if (proven.did !== account.did) throw pageRefusal('The form belongs to another account.')
      let done: Response | string = ''
      const fault = await faultOf(async () => {
        done = await changes[name].perform(call, holder, revalidate, form.get('id') ?? '')
      })
      if (fault) return factorsPage(call, holder, { fault })
      return typeof done === 'string' ? seeOther(urlOf(account, { done })) : done
    },
  })
}

async function distrust({ ctx }: PageCall, { account }: Holder, form: URLSearchParams): Promise<Response> {
  await ctx.db.transaction((tx) => deleteTrustedBrowser(tx, account.did, form.get('id') ?? ''))
  return seeOther(urlOf(account, { done: 'distrusted' }))
}

/** The page that asks for the password once more. */
function provePage(
  call: PageCall,
  { account, device }: Holder,
  form: URLSearchParams,
  fault: Fault | null,
): Promise<Response> {
  const [name, id] = [form.get('change') as Change, form.get('id')]
  const { question, submit } = changes[name]
  return page(call, {
    title: question,
    status: fault?.status,
    body: html`
<form method="post" action="${urlOf(account)}" class="card ask">
  ${hidden({ form_token: device.formToken, account: account.did, change: name, ...(id !== null && { id }) })}
  <div class="tight">
    <h1>${question}</h1>
    <p class="quiet">${texts.proveLead({ account: accountName(account) })}</p>
  </div>
  ${errorNote(fault)}
  <input type="hidden" autocomplete="username" value="${account.handle ?? account.did}">
  ${passwordField({ required: true, autofocus: true, fault })}
  <div class="actions"><button class="primary">${submit}</button></div>
  <p class="links"><a href="${urlOf(account)}">${texts.cancel}</a></p>
</form>`,
  })
}

// Passkeys

/** Shows the page on which a device creates a passkey, to a holder who has just re-authenticated. */
async function showNewPasskey(
  call: PageCall,
  holder: Holder,
  revalidate: EnterPage,
  fault: Fault | null,
): Promise<Response> {
  const options = await beginPasskey(call.ctx, holder.account, holder.device.tokenHash, revalidate)
  return newPasskeyPage(call, holder, { action: urlOf(holder.account), options, fault })
}

/** The challenge in the response proves that the holder has re-authenticated in this browser. */
async function confirmPasskey(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response> {
  const { account, device } = holder
  let codes: string[] | null = null
  const fault = await faultOf(async () => {
    await charge(call, 'createSession')
    const answer = passkeyAnswer(form) ?? ''
    codes = await addPasskey(call, account, { answer, name: form.get('name') ?? '', binding: device.tokenHash })
  })
  if (fault) return factorsPage(call, holder, { fault: { ...fault, status: 200 } })
  return codes === null ? seeOther(urlOf(account, { done: 'passkey-added' })) : codesPage(call, holder, codes)
}

async function rename(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response> {
  const { account } = holder
  const fault = await faultOf(() => renamePasskey(call.ctx, account.did, form.get('id') ?? '', form.get('name') ?? ''))
  return fault ? factorsPage(call, holder, { fault }) : seeOther(urlOf(account, { done: 'passkey-renamed' }))
}

interface Setup {
  /** Null if the page is shown again, because the app already has the secret. */
  uri: string | null
  secret: string | null
  fault: Fault | null
}

/** Shows the secret only once: not even after a wrong code is it shown again. */
const setUpPage = (call: PageCall, { account, device }: Holder, { uri, secret, fault }: Setup): Promise<Response> =>
  page(call, {
    title: texts.setUp,
    status: fault?.status,
    body: html`
<form method="post" action="${urlOf(account)}" class="card ask">
  ${hidden({ form_token: device.formToken, account: account.did, change: 'confirm-app' })}
  <div class="tight">
    <h1>${texts.setUp}</h1>
    ${uri !== null && html`<p class="quiet">${texts.scan}</p>`}
  </div>
  ${errorNote(fault)}
  ${
    uri !== null &&
    secret !== null &&
    html`<div class="scan">${qrCode(uri, texts.qrCode)}<div class="stack"><p class="secret">${secret}</p><a class="button" href="${uri}">${texts.openApp}</a></div></div>`
  }
  ${codeField({ label: texts.appCode, maxLength: 16, digits: { pattern: String.raw`[0-9]{3}[ \-]?[0-9]{3}`, says: texts.sixDigits }, autofocus: uri === null, fault })}
  <div class="actions"><button class="primary">${texts.turnOn}</button></div>
  <p class="links"><a href="${urlOf(account)}">${texts.cancel}</a></p>
</form>`,
  })

async function confirmApp(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response> {
  let codes: string[] | null = null
  const fault = await faultOf(async () => {
    await charge(call, 'createSession')
    codes = await confirmTotp(call, holder.account.did, form.get('code') ?? '')
  })
  if (fault) return setUpPage(call, holder, { uri: null, secret: null, fault })
  return codes === null ? seeOther(urlOf(holder.account, { done: 'app-added' })) : codesPage(call, holder, codes)
}

const codesPage = (call: PageCall, { account }: Holder, codes: readonly string[]): Promise<Response> =>
  page(call, {
    title: texts.newCodesTitle,
    body: html`
<section class="card ask">
  <div class="tight">
    <h1>${texts.newCodesTitle}</h1>
    <p class="quiet">${texts.newCodesUse}</p>
  </div>
  <p class="note warn">${texts.newCodesOnce}</p>
  <ul class="findings codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
  <p class="links"><a href="${urlOf(account)}">${texts.codesKept}</a></p>
</section>`,
  })

/** Changes that need no re-authentication, or carry their proof in the form. */
const simpleChanges: Readonly<
  Record<string, (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<Response>>
> = { 'confirm-passkey': confirmPasskey, 'rename-passkey': rename, 'confirm-app': confirmApp, distrust }

export const factorRoutes: Endpoint[] = [
  holderPage(PATH, async (call, holder) =>
    holder.account.hasPassword
      ? factorsPage(call, holder, { notice: notices.get(call.url.searchParams.get('done') ?? '') })
      : seeOther('/account'),
  ),
  holderForm(PATH, change),
]
