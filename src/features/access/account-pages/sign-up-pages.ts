/** The sign-up page. It returns to the app from which the person came. */
import { asset } from '../../../http/asset.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import type { Context } from '../../../platform/context.ts'
import { createAccount, signupNeeds, type GateAnswers, type SignupNeeds } from '../../identity/signup/signup.ts'
import { entryOf } from '../pages/pages.ts'
import {
  faultOf,
  field,
  fieldTexts,
  hidden,
  newPasswordField,
  seeOther,
  sentOnce,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { requestOf, returnPath, withRequest } from './app-request.ts'
import { formPage, formRoutes } from './form-page.ts'
import { MOVE_HERE_PATH } from './move-here-pages.ts'
import proofOfWork from './proof-of-work.js' with { type: 'text' }
import { signUpTexts as texts } from './sign-up-texts.ts'

const PATH = '/account/sign-up'

const workScript = asset('/assets/proof-of-work.js', 'text/javascript', proofOfWork)

/** Address of the page for moving here. It keeps the invite code. */
function moveHereUrl(given: URLSearchParams): string {
  const code = given.get('invite_code')
  return code ? `${MOVE_HERE_PATH}?${new URLSearchParams({ invite_code: code })}` : MOVE_HERE_PATH
}

const servedDomains = ({ config }: Context): string[] => config.availableUserDomains.map((domain) => `.${domain}`)

function domainPart(domains: readonly string[], chosen: string | null): Html {
  if (domains.length === 1) return html`<span id="handle-affix">${domains[0]}</span>`
  const options = domains.map((domain) => html`<option${domain === chosen && html` selected`}>${domain}</option>`)
  return html`<select id="handle-affix" name="domain" aria-label="${texts.domain}">${options}</select>`
}

/** The part for wallets, folded away unless it is filled in or has a fault: most people have no wallet. */
function walletPart({ config }: Context, given: URLSearchParams, fault: Fault | null): Html {
  const key = given.get('wallet_key') ?? ''
  const { passwordOptional } = config.accounts
  return html`
<details${(key !== '' || fault?.field === 'wallet_key') && html` open`}>
  <summary>${passwordOptional ? texts.walletOnly : texts.wallet}</summary>
  <div class="stack">
    <p class="quiet">${texts.walletAbout}</p>
    ${passwordOptional && html`<p class="note">${texts.walletOnlyAbout}</p>`}
    ${field({
      name: 'wallet_key',
      label: texts.walletKey,
      value: key,
      maxLength: 200,
      hint: texts.walletKeyHint,
      fault,
    })}
  </div>
</details>`
}

/** The fields that the gates of this server require. */
function gatePart({ question, proofOfWork }: SignupNeeds, given: URLSearchParams, fault: Fault | null): Html {
  return html`
  ${question !== null && field({ name: 'answer', label: question, value: given.get('answer') ?? '', required: true, maxLength: 300, hint: texts.questionHint, fault })}
  ${
    proofOfWork !== null &&
    html`
  <div data-work="${proofOfWork.challenge}" data-bits="${proofOfWork.bits}">
    ${hidden({ work_challenge: proofOfWork.challenge, work_nonce: '' })}
    <p class="note" role="status" hidden>${texts.working}</p>
    <p class="note" data-without-script>${texts.workNeedsScript}</p>
  </div>`
  }`
}

const gateAnswers = (form: URLSearchParams): GateAnswers => ({
  answer: form.get('answer'),
  proof: { challenge: form.get('work_challenge') ?? '', nonce: form.get('work_nonce') ?? '' },
})

async function signUpPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const request = requestOf(given)
  const needs = await signupNeeds(call.ctx)
  return formPage(call, {
    title: texts.title,
    lead: texts.lead({ host: new URL(call.ctx.config.publicUrl).host }),
    action: withRequest(PATH, given),
    fault,
    fields: html`${request && hidden(request)}${accountFields(call.ctx, given, fault)}${gatePart(needs, given, fault)}`,
    script: needs.proofOfWork === null ? undefined : workScript.url,
    submit: texts.submit,
    links: html`<a href="${returnPath(given, '/account')}">${texts.haveAccount}</a> ${request === null && call.ctx.config.repos.importsEnabled && html`<a href="${moveHereUrl(given)}">${texts.haveAccountElsewhere}</a>`}`,
  })
}

function accountFields(ctx: Context, given: URLSearchParams, fault: Fault | null): Html {
  const { inviteCodeRequired, links, accounts } = ctx.config
  return html`
  ${field({
    name: 'handle',
    label: fieldTexts.handle,
    value: given.get('handle') ?? '',
    affix: domainPart(servedDomains(ctx), given.get('domain')),
    required: true,
    autofocus: fault === null,
    hint: texts.handleHint,
    fault,
  })}
  ${field({
    name: 'email',
    label: fieldTexts.email,
    type: 'email',
    value: given.get('email') ?? '',
    autocomplete: 'email',
    required: true,
    hint: texts.emailHint,
    fault,
  })}
  ${newPasswordField({ label: fieldTexts.password, required: !accounts.passwordOptional, fault })}
  ${walletPart(ctx, given, fault)}
  ${inviteCodeRequired && field({ name: 'invite_code', label: texts.inviteCode, value: given.get('invite_code') ?? '', required: true, hint: texts.inviteHint, fault })}
  ${links.termsOfService && html`<p class="quiet">${texts.agree({ terms: (content) => html`<a href="${links.termsOfService}">${content}</a>` })}</p>`}`
}

async function join(call: PageCall, form: URLSearchParams): Promise<Response> {
  const { ctx } = call
  const fault = await faultOf(async () => {
    await charge(call, 'createAccount')
    const entry = entryOf(call, { remember: false })
    await createAccount(call, wantedAccount(ctx, form), null, (tx, did) => entry.keep(tx, did))
    entry.tell()
  })
  return fault === null ? seeOther(returnPath(form, '/account')) : signUpPage(call, form, fault)
}

function wantedAccount(ctx: Context, form: URLSearchParams) {
  const domains = servedDomains(ctx)
  const domain = domains.find((one) => one === form.get('domain')) ?? domains[0]!
  const name = (form.get('handle') ?? '').trim().replace(/^@/, '')
  const walletKey = (form.get('wallet_key') ?? '').trim()
  const password = form.get('password') ?? ''
  return {
    handle: domains.some((one) => name.toLowerCase().endsWith(one)) ? name : name + domain,
    email: (form.get('email') ?? '').trim(),
    // Without a wallet key, an empty password is a mistake, even where passwords are optional.
    password: password === '' && walletKey !== '' && ctx.config.accounts.passwordOptional ? undefined : password,
    recoveryKey: walletKey === '' ? undefined : walletKey,
    inviteCode: form.get('invite_code')?.trim(),
    gates: gateAnswers(form),
  }
}

export const signUpRoutes = [
  ...formRoutes(PATH, { show: signUpPage, send: (call, form) => sentOnce(call, form, () => join(call, form)) }),
  workScript.route,
]
