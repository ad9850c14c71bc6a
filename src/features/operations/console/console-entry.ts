/** Signing in and out at the console. */
import {
  faultOf,
  codeField,
  errorNote,
  identifierField,
  passkeyAnswer,
  passkeyPart,
  passkeyScript,
  passwordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../../access/page-parts/page-parts.ts'
import { offerPasskey } from '../../access/factors/factors.ts'
import { browserHashOf, formProof, readOwnForm, requireNavigation } from '../../access/pages/pages.ts'
import { charge } from '../../../http/limiting.ts'
import { html } from '../../../http/html.ts'
import { openOperatorSession, operatorUse } from '../operators/operators.ts'
import { ask, clearToken, deskOf, readConsoleForm, setToken } from './console-session.ts'
import { bare } from './console-layout.ts'
import { consoleTexts as texts } from './console-texts.ts'

export const SIGN_IN = '/admin/sign-in'

async function signInPage(
  call: PageCall,
  {
    identifier = '',
    fault = null,
    asksCode = false,
  }: { identifier?: string; fault?: Fault | null; asksCode?: boolean } = {},
): Promise<Response> {
  const passkey = passkeyPart(await offerPasskey(call.ctx, null, () => operatorUse(null, browserHashOf(call))))
  return bare(call, {
    title: texts.operators,
    script: passkey === null ? undefined : passkeyScript.url,
    body: html`
<form method="post" action="${SIGN_IN}" class="card">
  ${formProof(call)}
  <div class="tight">
    <h1>${texts.operators}</h1>
    <p class="quiet">${texts.signInLead}</p>
  </div>
  ${errorNote(fault)}
  ${identifierField({ value: identifier, required: true, autofocus: identifier === '' })}
  ${passwordField({ required: true, autofocus: identifier !== '', fault })}
  ${asksCode && codeField({ name: 'factor_code', label: texts.factorCode, fault })}
  <div class="actions"><button class="primary">${texts.signIn}</button></div>
  ${passkey}
</form>`,
  })
}

export async function showSignIn(call: PageCall): Promise<Response> {
  requireNavigation(call)
  return (await deskOf(call)) === null ? signInPage(call) : seeOther('/admin')
}

export async function sendSignIn(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const identifier = form.get('identifier') ?? ''
  const factorCode = form.get('factor_code') ?? undefined
  const fault = await faultOf(async () => {
    await charge(call, 'createSession')
    const passkey = passkeyAnswer(form)
    const proof =
      passkey === null
        ? { identifier, password: form.get('password') ?? '', factorCode }
        : { passkey, binding: browserHashOf(call) }
    const { token } = await openOperatorSession(call, { ...proof, isBrowser: true })
    setToken(call, token)
  })
  if (fault === null) return seeOther('/admin')
  const isCode = isAboutCode(fault)
  const message = !isCode && fault.status === 401 ? texts.wrong : fault.message
  return signInPage(call, {
    identifier,
    fault: { ...fault, field: fieldOf(fault), status: 200, message },
    asksCode: isCode || factorCode !== undefined,
  })
}

/** Whether a second factor is missing, or its code wrong. */
export const isAboutCode = ({ field }: Fault): boolean => field === 'factor_code' || field === 'code'

/** The field of the forms of the console that a refused credential belongs to. */
export const fieldOf = (fault: Fault): string | null =>
  isAboutCode(fault) ? 'factor_code' : fault.status === 401 ? 'password' : null

export async function sendSignOut(call: PageCall): Promise<Response> {
  const desk = await deskOf(call)
  if (desk === null) return seeOther(SIGN_IN)
  await readConsoleForm(desk)
  await ask(desk, `/v1/admin/sessions/${desk.who.sessionId}/end`, {})
  clearToken(call)
  return seeOther(SIGN_IN)
}
