/** The second page of a sign-in, which asks for a factor beside the password. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { AskedFactors } from '../factors/factors.ts'
import {
  codeField,
  errorNote,
  goodNote,
  hidden,
  PASSKEY,
  PENDING_ID,
  passkeyPart,
  passkeyScript,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { factorTexts as texts } from './factor-texts.ts'

/** Fields of the page in addition to `PENDING_ID`: the code, the button that requests another code, and a box. */
export const FACTOR_CODE = 'factor_code'
export const ANOTHER_CODE = 'factor_again'
export const TRUST = 'factor_trust'
const ownFields: readonly string[] = ['password', PENDING_ID, FACTOR_CODE, ANOTHER_CODE, TRUST, PASSKEY]

export interface FactorView {
  /** The form of the first page. Its fields go along, except for the password. */
  form: URLSearchParams
  pendingId: string
  asked: NonNullable<AskedFactors>
  /** What the browser needs to use a passkey; null if none can be used. */
  passkey: object | null
  fault: Fault | null
  /** A notice; not shown if there is a fault. */
  notice?: Wording | null
  leavesOrigin?: boolean
  /** Whether this is a re-authentication, which is required even in a trusted browser. */
  isProof?: boolean
}

export function factorPage(
  call: PageCall,
  { form, asked, pendingId, passkey, fault, notice = null, leavesOrigin, isProof = false }: FactorView,
): Promise<Response> {
  const { pathname, search } = call.url
  return page(call, {
    title: texts.title,
    status: fault?.status,
    leavesOrigin,
    script: passkey === null ? undefined : passkeyScript.url,
    body: html`
<form method="post" action="${pathname}${search}" class="card ask">
  ${carriedFields(form)}
  ${hidden({ [PENDING_ID]: pendingId })}
  <div class="tight">
    <h1>${texts.title}</h1>
    <p class="quiet">${leadOf(asked)}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  ${codeField({ name: FACTOR_CODE, ...(!asked.mailed && { label: texts.code }), autofocus: true, maxLength: 64, fault })}
  ${!isProof && html`<label class="check"><input type="checkbox" name="${TRUST}" value="yes"><span>${texts.trust}</span></label>`}
  <div class="actions"><button class="primary">${texts.proceed}</button></div>
  ${passkeyPart(passkey)}
  ${asked.mailed && html`<div><button class="link" name="${ANOTHER_CODE}" value="yes" formnovalidate>${texts.another}</button></div>`}
  ${!isProof && html`<p class="links"><a href="${pathname}${search}">${texts.cancel}</a></p>`}
</form>`,
  })
}

const leadOf = ({ mailed, totp, passkeys }: AskedFactors): Wording =>
  mailed ? texts.mailed : totp && passkeys ? texts.appOrPasskey : passkeys ? texts.passkey : texts.app

/** Returns the form without the fields that prove who sends it. */
export const withoutProof = (form: URLSearchParams): URLSearchParams =>
  new URLSearchParams([...form].filter(([name]) => !ownFields.includes(name)))

/** The fields of a form, as hidden fields of a page that comes before the form takes effect. */
export const carriedFields = (form: URLSearchParams): Html[] =>
  [...withoutProof(form)].flatMap(([name, value]) => hidden({ [name]: value }))
