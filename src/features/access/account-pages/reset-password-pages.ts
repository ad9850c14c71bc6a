/** The pages for choosing a new password with a mailed code. They return to the app from which the person came. */
import { route } from '../../../http/endpoint.ts'
import { html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { requestPasswordReset, resetPassword } from '../../identity/account-changes/account-changes.ts'
import {
  codeField,
  faultOf,
  field,
  fieldTexts,
  hidden,
  newPasswordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { WITH_NEW_PASSWORD } from '../oauth/oauth.ts'
import { requestOf, returnPath, withRequest } from './app-request.ts'
import { formPage, formRoutes } from './form-page.ts'
import { signInTexts as texts } from './sign-in-texts.ts'

const carried = (given: URLSearchParams) => hidden(requestOf(given) ?? {})

const forgottenPage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> =>
  formPage(call, {
    title: texts.resetTitle,
    lead: texts.resetLead,
    action: withRequest('/account/reset-password', given),
    fault,
    fields: html`${carried(given)}${field({
      name: 'email',
      label: fieldTexts.email,
      type: 'email',
      value: given.get('email') ?? '',
      autocomplete: 'email',
      required: true,
      autofocus: true,
    })}`,
    submit: texts.sendCode,
    links: html`<a href="${withRequest('/account/reset-password/code', given)}">${texts.haveCode}</a> <a href="${returnPath(given, '/account/sign-in')}">${texts.backToSignIn}</a>`,
  })

async function sendCode(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(async () => {
    await charge(call, 'requestPasswordReset')
    return requestPasswordReset(call, (form.get('email') ?? '').trim())
  })
  return fault === null
    ? seeOther(withRequest('/account/reset-password/code', form, { sent: 'yes' }))
    : forgottenPage(call, form, fault)
}

const codePage = (call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> =>
  formPage(call, {
    title: texts.newTitle,
    lead: texts.newLead,
    action: withRequest('/account/reset-password/code', given),
    notice: given.has('sent') ? texts.codeSent : null,
    fault,
    fields: html`
  ${carried(given)}
  ${codeField({ value: given.get('code') ?? '', autofocus: fault === null, fault })}
  ${newPasswordField({ fault })}`,
    submit: texts.changePassword,
    links: html`<a href="${withRequest('/account/reset-password', given)}">${texts.anotherCode}</a>`,
  })

async function reset(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(async () => {
    await charge(call, 'resetPassword')
    await resetPassword(call, (form.get('code') ?? '').trim(), form.get('password') ?? '')
  })
  if (fault !== null) return codePage(call, form, fault)
  return seeOther(returnPath(form, '/account/sign-in?done=reset', WITH_NEW_PASSWORD))
}

export const resetPasswordRoutes = [
  ...formRoutes('/account/reset-password', { show: forgottenPage, send: sendCode }),
  ...formRoutes('/account/reset-password/code', { show: codePage, send: reset }),
  route('GET', '/.well-known/change-password', { handler: async () => seeOther('/account/reset-password') }),
]
