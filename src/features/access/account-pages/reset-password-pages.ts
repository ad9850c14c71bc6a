/** The pages to choose a new password with a mailed code. */
import { route } from '../../../http/endpoint.ts'
import { html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requestPasswordReset, resetPassword } from '../../identity/account-changes/account-changes.ts'
import {
  codeField,
  faultOf,
  field,
  newPasswordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { formPage, formRoutes } from './form-page.ts'

const forgottenPage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Response =>
  formPage(call, {
    title: 'Reset your password',
    lead: 'We send a code to the email address of your account.',
    action: '/account/reset-password',
    fault,
    fields: field({
      name: 'email',
      label: 'Email address',
      type: 'email',
      value: given.get('email') ?? '',
      autocomplete: 'email',
      required: true,
      autofocus: true,
    }),
    submit: 'Send the code',
    links: html`<a href="/account/reset-password/code">I already have a code</a> <a href="/account/sign-in">Back to sign-in</a>`,
  })

async function sendCode(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(() => {
    charge(call, 'requestPasswordReset')
    return requestPasswordReset(call, (form.get('email') ?? '').trim())
  })
  return fault === null ? seeOther('/account/reset-password/code?sent=yes') : forgottenPage(call, form, fault)
}

const codePage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Response =>
  formPage(call, {
    title: 'Choose a new password',
    lead: 'It signs you out everywhere, and ends the access of all apps.',
    action: '/account/reset-password/code',
    notice: given.has('sent') ? 'If there is an account with this address, we have sent a code to it.' : null,
    fault,
    fields: html`
  ${codeField({ value: given.get('code') ?? '', autofocus: fault === null, fault })}
  ${newPasswordField({ fault })}`,
    submit: 'Change password',
    links: html`<a href="/account/reset-password">Send another code</a>`,
  })

async function reset(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(async () => {
    charge(call, 'resetPassword')
    await resetPassword(call, (form.get('code') ?? '').trim(), form.get('password') ?? '')
  })
  return fault === null ? seeOther('/account/sign-in?done=reset') : codePage(call, form, fault)
}

export const resetPasswordRoutes = [
  ...formRoutes('/account/reset-password', { show: forgottenPage, send: sendCode }),
  ...formRoutes('/account/reset-password/code', { show: codePage, send: reset }),
  route('GET', '/.well-known/change-password', { handler: async () => seeOther('/account/reset-password') }),
]
