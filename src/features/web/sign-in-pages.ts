/** Signing in to the account page, making an account, and choosing a new password with a code from the mail. */
import { route } from '../../http/endpoint.ts'
import { html, type Html } from '../../http/html.ts'
import { chargeAddress } from '../../http/limiting.ts'
import { page } from '../../http/page.ts'
import { requestPasswordReset, resetPassword } from '../account-changes/account-changes.ts'
import { createAccount } from '../signup/signup.ts'
import { HAS_ACCOUNT } from '../oauth/oauth.ts'
import { requireNavigation, requireOwnForm, signIn } from './devices.ts'
import { errorNote, faultOf, field, goodNote, identifierField, isWrong, passwordField, readForm, seeOther, type PageCall } from './page-parts.ts'
import { withPassword } from './sign-in.ts'

/** Parameters of an authorization request that somebody comes from and wants to go back to. */
const returnFields = (given: URLSearchParams): [string, string][] =>
  ['request_uri', 'client_id'].flatMap((name) => (given.get(name) ? [[name, given.get(name)!] as [string, string]] : []))

function returnPath(given: URLSearchParams): string {
  const fields = returnFields(given)
  return fields.length === 2 ? `/oauth/authorize?${new URLSearchParams([...fields, [HAS_ACCOUNT, 'yes']])}` : '/account'
}

const hidden = (fields: [string, string][]): Html[] => fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

const rememberField = html`<label class="check"><input type="checkbox" name="remember" value="yes"><span>Stay signed in on this device <small>Only on a device of your own.</small></span></label>`

// Signing in

function signInPage({ ctx }: PageCall, given: URLSearchParams, message: string | null): Response {
  const identifier = given.get('identifier') ?? ''
  return page(ctx.config, {
    title: 'Sign in',
    body: html`<form method="post" action="/account/sign-in" class="card">
<div class="tight"><h1>Sign in</h1><p class="quiet">To see your account and the apps that use it.</p></div>
${goodNote(notices.get(given.get('done') ?? '') ?? null)}${errorNote(message)}
${identifierField({ value: identifier, required: true, autofocus: identifier === '', invalid: isWrong(message) })}
${passwordField({ required: true, autofocus: identifier !== '', invalid: isWrong(message) })}
${rememberField}
<div class="actions"><button class="primary">Sign in</button></div>
<p class="links"><a href="/account/reset-password">Forgot your password?</a> <a href="/account/sign-up">Create an account</a></p>
</form>`,
  })
}

const notices = new Map([
  ['reset', 'Your password is changed. Please sign in with the new one.'],
  ['signed-out', 'You are signed out.'],
])

async function enter(call: PageCall): Promise<Response> {
  requireOwnForm(call)
  chargeAddress(call, ['createSession'])
  const form = await readForm(call)
  const outcome = await withPassword(call.ctx, form.get('identifier') ?? '', form.get('password') ?? '', async (account, confirm) => {
    if (account.takedownRef === null) await signIn(call, account.did, { remember: form.get('remember') === 'yes', confirm })
    return account
  })
  if (!outcome.ok) return signInPage(call, form, outcome.message)
  return outcome.value.takedownRef === null ? seeOther('/account') : signInPage(call, form, 'This account has been taken down.')
}

// Making an account

function signUpPage({ ctx }: PageCall, given: URLSearchParams, message: string | null): Response {
  const { availableUserDomains, inviteCodeRequired, links } = ctx.config
  const domains = availableUserDomains.map((domain) => `.${domain}`)
  const domain = given.get('domain') ?? domains[0]!
  return page(ctx.config, {
    title: 'Create an account',
    body: html`<form method="post" action="/account/sign-up" class="card">
<div class="tight"><h1>Create an account</h1><p class="quiet">Your posts, follows and everything else will live on ${new URL(ctx.config.publicUrl).host}. You can move away at any time.</p></div>
${errorNote(message)}
${hidden(returnFields(given))}
<div class="field"><label for="name">Handle</label><div class="affix"><input id="name" name="name" type="text" value="${given.get('name')}" autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false" required autofocus aria-describedby="name-hint">${
      domains.length === 1
        ? html`<span>${domains[0]}</span>`
        : html`<select name="domain" aria-label="Domain of the handle">${domains.map((one) => html`<option${one === domain && html` selected`}>${one}</option>`)}</select>`
    }</div><small id="name-hint">How others find and mention you. Letters, digits and hyphens.</small></div>
${field({ name: 'email', label: 'Email address', type: 'email', value: given.get('email') ?? '', autocomplete: 'email', required: true, hint: 'For codes when something important changes. Nobody else sees it.' })}
${passwordField({ label: 'Password', autocomplete: 'new-password', required: true, hint: 'Long is good. A password manager can make one for you.' })}
${inviteCodeRequired && field({ name: 'invite_code', label: 'Invite code', value: given.get('invite_code') ?? '', required: true })}
${links.termsOfService && html`<p class="quiet">By creating an account you agree to the <a href="${links.termsOfService}">terms</a>.</p>`}
<div class="actions"><button class="primary">Create account</button></div>
<p class="links"><a href="${returnPath(given)}">I have an account</a></p>
</form>`,
  })
}

async function join(call: PageCall): Promise<Response> {
  requireOwnForm(call)
  chargeAddress(call, ['createAccount'])
  const { ctx } = call
  const form = await readForm(call)
  const domains = ctx.config.availableUserDomains.map((domain) => `.${domain}`)
  const domain = domains.find((one) => one === form.get('domain')) ?? domains[0]!
  const name = (form.get('name') ?? '').trim().replace(/^@/, '')
  const request = {
    handle: name.toLowerCase().endsWith(domain) ? name : name + domain,
    email: form.get('email') ?? '',
    password: form.get('password') ?? '',
    inviteCode: form.get('invite_code') ?? undefined,
  }
  const fault = await faultOf(async () => {
    const { did } = await createAccount(ctx, request, null)
    await signIn(call, did, { remember: false })
  })
  return fault === null ? seeOther(returnPath(form)) : signUpPage(call, form, fault)
}

// A new password

function forgottenPage({ ctx }: PageCall): Response {
  return page(ctx.config, {
    title: 'Reset your password',
    body: html`<form method="post" action="/account/reset-password" class="card">
<div class="tight"><h1>Reset your password</h1><p class="quiet">We send a code to the email address of your account.</p></div>
${field({ name: 'email', label: 'Email address', type: 'email', autocomplete: 'email', required: true, autofocus: true })}
<div class="actions"><button class="primary">Send the code</button></div>
<p class="links"><a href="/account/reset-password/code">I have a code already</a> <a href="/account/sign-in">Back to sign-in</a></p>
</form>`,
  })
}

async function sendCode(call: PageCall): Promise<Response> {
  requireOwnForm(call)
  chargeAddress(call, ['requestPasswordReset'])
  const form = await readForm(call)
  requestPasswordReset(call.ctx, form.get('email') ?? '')
  return seeOther('/account/reset-password/code?sent=yes')
}

function codePage({ ctx, url }: PageCall, given: URLSearchParams, message: string | null): Response {
  return page(ctx.config, {
    title: 'Choose a new password',
    body: html`<form method="post" action="/account/reset-password/code" class="card">
<div class="tight"><h1>Choose a new password</h1><p class="quiet">It signs you out everywhere, and ends the access of all apps.</p></div>
${url.searchParams.has('sent') && goodNote('If there is an account with this address, a code is on its way to it.')}${errorNote(message)}
${field({ name: 'code', label: 'Code from the email', value: given.get('code') ?? '', autocomplete: 'one-time-code', required: true, autofocus: true })}
${passwordField({ label: 'New password', autocomplete: 'new-password', required: true })}
<div class="actions"><button class="primary">Change password</button></div>
<p class="links"><a href="/account/reset-password">Send another code</a></p>
</form>`,
  })
}

async function reset(call: PageCall): Promise<Response> {
  requireOwnForm(call)
  chargeAddress(call, ['resetPassword'])
  const form = await readForm(call)
  const fault = await faultOf(() => resetPassword(call.ctx, (form.get('code') ?? '').trim(), form.get('password') ?? ''))
  return fault === null ? seeOther('/account/sign-in?done=reset') : codePage(call, form, fault)
}

const shown = (show: (call: PageCall, given: URLSearchParams, message: null) => Response) => async (call: PageCall) => {
  requireNavigation(call)
  return show(call, call.url.searchParams, null)
}

export const signInRoutes = [
  route('GET', '/account/sign-in', { handler: shown(signInPage) }),
  route('POST', '/account/sign-in', { handler: enter }),
  route('GET', '/account/sign-up', { handler: shown(signUpPage) }),
  route('POST', '/account/sign-up', { handler: join }),
  route('GET', '/account/reset-password', { handler: shown(forgottenPage) }),
  route('POST', '/account/reset-password', { handler: sendCode }),
  route('GET', '/account/reset-password/code', { handler: shown(codePage) }),
  route('POST', '/account/reset-password/code', { handler: reset }),
  route('GET', '/.well-known/change-password', { handler: async () => seeOther('/account/reset-password') }),
]
