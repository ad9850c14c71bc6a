/** The second page of a sign-in, which asks for a factor beside the password. */
import { html, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { AskedFactors } from '../factors/factors.ts'
import { codeField, errorNote, goodNote, hidden, type Fault, type PageCall } from '../page-parts/page-parts.ts'

/** Fields of the page: the id of the sign-in, the code, the button that has another code mailed, and a box. */
export const PENDING_ID = 'factor_step'
export const FACTOR_CODE = 'factor_code'
export const ANOTHER_CODE = 'factor_again'
export const TRUST = 'factor_trust'
const ownFields: readonly string[] = ['password', PENDING_ID, FACTOR_CODE, ANOTHER_CODE, TRUST]

export interface FactorView {
  /** The form of the first page, whose fields go along without the password. */
  form: URLSearchParams
  pendingId: string
  asked: NonNullable<AskedFactors>
  fault: Fault | null
  /** Not shown beside a fault. */
  notice?: string | null
  leavesOrigin?: boolean
  /** Whether it proves who asks, for which no browser is trusted. */
  isProof?: boolean
}

export const factorPage = (
  { ctx, url }: PageCall,
  { form, asked, pendingId, fault, notice = null, leavesOrigin, isProof = false }: FactorView,
): Response =>
  page(ctx.config, {
    title: 'One more step',
    status: fault?.status,
    leavesOrigin,
    body: html`
<form method="post" action="${url.pathname}${url.search}" class="card ask">
  ${carried(form)}
  ${hidden({ [PENDING_ID]: pendingId })}
  <div class="tight">
    <h1>One more step</h1>
    <p class="quiet">${leads[asked.mailed ? 'mailed' : 'totp']}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  ${codeField({ name: FACTOR_CODE, ...(!asked.mailed && { label: 'Code' }), autofocus: true, maxLength: 64, fault })}
  ${!isProof && html`<label class="check"><input type="checkbox" name="${TRUST}" value="yes"><span>Do not ask again in this browser for 30 days</span></label>`}
  <div class="actions"><button class="primary">Continue</button></div>
  ${asked.mailed && html`<div><button class="link" name="${ANOTHER_CODE}" value="yes" formnovalidate>Send another code</button></div>`}
</form>`,
  })

const leads = {
  mailed: 'We have sent a code to the email address of your account. It is valid for 15 minutes.',
  totp: 'Enter the code that your authenticator app shows now, or one of your recovery codes.',
}

const carried = (form: URLSearchParams): Html[] =>
  [...form].filter(([name]) => !ownFields.includes(name)).flatMap(([name, value]) => hidden({ [name]: value }))
