/** The pages to choose a new password with a mailed code. */
import { route } from '../../../http/endpoint.ts'
import { html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { requestPasswordReset, resetPassword } from '../../identity/account-changes/account-changes.ts'
import {
  codeField,
  errorNote,
  faultOf,
  field,
  goodNote,
  newPasswordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { formProof, readOwnForm, requireNavigation } from '../pages/pages.ts'

function forgottenPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Response {
  return page(call.ctx.config, {
    title: 'Reset your password',
    status: fault?.status,
    body: html`
<form method="post" action="/account/reset-password" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Reset your password</h1>
    <p class="quiet">We send a code to the email address of your account.</p>
  </div>
  ${errorNote(fault)}
  ${field({ name: 'email', label: 'Email address', type: 'email', value: given.get('email') ?? '', autocomplete: 'email', required: true, autofocus: true })}
  <div class="actions"><button class="primary">Send the code</button></div>
  <p class="links"><a href="/account/reset-password/code">I already have a code</a> <a href="/account/sign-in">Back to sign-in</a></p>
</form>`,
  })
}

async function sendCode(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const fault = await faultOf(() => {
    charge(call, 'requestPasswordReset')
    return requestPasswordReset(call, (form.get('email') ?? '').trim())
  })
  return fault === null ? seeOther('/account/reset-password/code?sent=yes') : forgottenPage(call, form, fault)
}

function codePage(call: PageCall, given: URLSearchParams, fault: Fault | null): Response {
  const sent = given.has('sent') ? 'If there is an account with this address, we have sent a code to it.' : null
  return page(call.ctx.config, {
    title: 'Choose a new password',
    status: fault?.status,
    body: html`
<form method="post" action="/account/reset-password/code" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Choose a new password</h1>
    <p class="quiet">It signs you out everywhere, and ends the access of all apps.</p>
  </div>
  ${fault === null && goodNote(sent)}
  ${errorNote(fault)}
  ${codeField({ value: given.get('code') ?? '', autofocus: fault === null, fault })}
  ${newPasswordField({ fault })}
  <div class="actions"><button class="primary">Change password</button></div>
  <p class="links"><a href="/account/reset-password">Send another code</a></p>
</form>`,
  })
}

async function reset(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const fault = await faultOf(async () => {
    charge(call, 'resetPassword')
    await resetPassword(call, (form.get('code') ?? '').trim(), form.get('password') ?? '')
  })
  return fault === null ? seeOther('/account/sign-in?done=reset') : codePage(call, form, fault)
}

const pageHandler =
  (show: (call: PageCall, given: URLSearchParams, fault: null) => Response) => async (call: PageCall) => {
    requireNavigation(call)
    return show(call, call.url.searchParams, null)
  }

export const resetPasswordRoutes = [
  route('GET', '/account/reset-password', { handler: pageHandler(forgottenPage) }),
  route('POST', '/account/reset-password', { handler: sendCode }),
  route('GET', '/account/reset-password/code', { handler: pageHandler(codePage) }),
  route('POST', '/account/reset-password/code', { handler: reset }),
  route('GET', '/.well-known/change-password', { handler: async () => seeOther('/account/reset-password') }),
]
