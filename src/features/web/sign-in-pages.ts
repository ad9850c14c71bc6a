/** The sign-in page of the account page. */
import { route } from '../../http/endpoint.ts'
import { html } from '../../http/html.ts'
import { chargeAddress } from '../../http/limiting.ts'
import { page } from '../../http/page.ts'
import { formProof, readOwnForm, requireNavigation, signIn } from './devices.ts'
import { faultAt, faultOf, type Fault } from './faults.ts'
import { errorNote, goodNote, identifierField, passwordField, rememberField, seeOther, type PageCall } from './page-parts.ts'
import { withPassword } from './sign-in.ts'

const notices = new Map([
  ['reset', 'Your password is changed. Please sign in with the new one.'],
  ['signed-out', 'You are signed out.'],
])

function signInPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Response {
  const identifier = given.get('identifier') ?? ''
  const isTyped = identifier !== ''
  return page(call.ctx.config, {
    title: 'Sign in',
    status: fault?.status,
    body: html`
<form method="post" action="/account/sign-in" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>Sign in</h1>
    <p class="quiet">To see your account and the apps that use it.</p>
  </div>
  ${goodNote(notices.get(given.get('done') ?? '') ?? null)}
  ${errorNote(fault)}
  ${identifierField({ value: identifier, required: true, autofocus: !isTyped })}
  ${passwordField({ required: true, autofocus: isTyped, fault })}
  ${rememberField(given.get('remember') === 'yes')}
  <div class="actions"><button class="primary">Sign in</button></div>
  <p class="links"><a href="/account/reset-password">Forgot your password?</a> ${call.ctx.capabilities.has('escrow') && html`<a href="/account/recovery">Lost your wallet?</a> `}<a href="/account/sign-up">Create an account</a></p>
</form>`,
  })
}

const takenDown = faultAt(null, 'This account has been taken down. Please contact the operator of this server.', 200)

async function enter(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const limited = await faultOf(() => chargeAddress(call, ['createSession']))
  if (limited) return signInPage(call, form, limited)
  const outcome = await withPassword(call, form.get('identifier') ?? '', form.get('password') ?? '', async (account, confirm) => {
    if (account.takedownRef === null) await signIn(call, account.did, { remember: form.get('remember') === 'yes', confirm })
    return account
  })
  if (!outcome.ok) return signInPage(call, form, outcome.fault)
  return outcome.value.takedownRef === null ? seeOther('/account') : signInPage(call, form, takenDown)
}

export const signInRoutes = [
  route('GET', '/account/sign-in', {
    async handler(call) {
      requireNavigation(call)
      return signInPage(call, call.url.searchParams, null)
    },
  }),
  route('POST', '/account/sign-in', { handler: enter }),
]
