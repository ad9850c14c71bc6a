/** The pages of the console, and the forms in them. */
import { charge } from '../../../http/limiting.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { requireNavigation } from '../../access/pages/pages.ts'
import { askedFactors, offerPasskey } from '../../access/factors/factors.ts'
import {
  codeField,
  errorNote,
  faultOf,
  hidden,
  passkeyAnswer,
  passkeyPart,
  passkeyScript,
  passwordField,
  seeOther,
  sentOnce,
  type Fault,
  type PageCall,
} from '../../access/page-parts/page-parts.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { operatorUse, plainReason, proveAgain } from '../operators/operators.ts'
import { consoleActs } from './console-acts.ts'
import { accountPage, accountsPage } from './console-accounts.ts'
import { caseExport, casePage, casesPage } from './console-cases.ts'
import { signUpsPage } from './console-sign-ups.ts'
import { dataPage } from './console-data.ts'
import { auditPage, operatorsPage } from './console-operators.ts'
import { configurationPage } from './console-configuration.ts'
import { fieldOf, isAboutCode, SIGN_IN } from './console-entry.ts'
import { invitesPage, waitlistPage } from './console-invites.ts'
import { framed, inEnglish } from './console-layout.ts'
import { agentsPage, pushesPage } from './console-programs.ts'
import { requestsPage } from './console-requests.ts'
import { networkPage, overviewPage, workPage } from './console-service.ts'
import { consoleTexts as texts } from './console-texts.ts'
import { ask, consoleProof, deskOf, readConsoleForm, setToken, type Desk } from './console-session.ts'

export { showBlob } from './console-data.ts'
export { sendSignIn, sendSignOut, showSignIn } from './console-entry.ts'

export const shownPages = {
  overview: overviewPage,
  accounts: accountsPage,
  account: accountPage,
  cases: casesPage,
  case: casePage,
  caseExport,
  signUps: signUpsPage,
  data: dataPage,
  invites: invitesPage,
  waitlist: waitlistPage,
  audit: auditPage,
  operators: operatorsPage,
  network: networkPage,
  work: workPage,
  configuration: configurationPage,
  requests: requestsPage,
  agents: agentsPage,
  pushes: pushesPage,
} as const

/** Show a page to the operator who is signed in. */
export async function show(call: PageCall, name: keyof typeof shownPages): Promise<Response> {
  requireNavigation(call)
  const desk = await deskOf(call)
  return desk === null ? seeOther(SIGN_IN) : shownPages[name](desk)
}

const isOwnPath = (path: string): boolean => /^\/admin(\/[a-z-]+)?(\?[\w%.:=&~+-]*)?$/.test(path)

/** Carry out a form. A dangerous act may ask the operator to sign in again, and then repeats the form. */
export async function sendAct(call: PageCall): Promise<Response> {
  const desk = await deskOf(call)
  if (desk === null) return seeOther(SIGN_IN)
  const form = await readConsoleForm(desk)
  return sentOnce(call, form, () => carryOut(call, desk, form))
}

async function carryOut(call: PageCall, desk: Desk, form: URLSearchParams): Promise<Response> {
  const name = form.get('act') ?? ''
  const act = Object.hasOwn(consoleActs, name) ? consoleActs[name] : undefined
  const given = form.get('back') ?? ''
  const back = isOwnPath(given) ? given : '/admin'
  if (act === undefined) return told(desk, back, texts.noSuchAct, null, 400)
  const reason = plainReason(form.get('reason') ?? '') ?? undefined
  if (reason === undefined && !act.hasOwnReason) return told(desk, back, texts.reasonNeeded, null, 400)
  const [password, passkey] = [form.get('password'), passkeyAnswer(form)]
  const formFault = act.faultOf?.(form) ?? null
  if (formFault !== null) return told(desk, back, formFault, null, 400)
  let token = desk.token
  if (password !== null || passkey !== null) {
    const fault = await faultOf(async () => {
      await charge(call, 'createSession')
      const factorCode = form.get('factor_code') ?? undefined
      const proof =
        passkey === null ? { password: password ?? '', factorCode } : { passkey, binding: desk.who.tokenHash }
      token = await proveAgain(call, desk.who, proof)
    })
    if (fault !== null) {
      const isCode = isAboutCode(fault)
      const message = fault.status === 401 && !isCode ? texts.wrongPassword : fault.message
      return askPassword(desk, form, {
        fault: { ...fault, field: fieldOf(fault), message },
        asksCode: isCode || form.has('factor_code'),
      })
    }
    setToken(call, token)
  }
  const now = { ...desk, token }
  const lookUp = act.lookUp?.(form) ?? null
  const found = lookUp === null ? null : await ask(now, lookUp)
  if (found?.ok === false) return told(now, back, inEnglish(found.message), null, found.status)
  const answer = await ask(now, act.path(form), act.json(form, found?.body), reason)
  if (!answer.ok && answer.name === 'PasswordRequired') return askPassword(now, form)
  if (!answer.ok) return told(now, back, inEnglish(answer.message), null, answer.status)
  return told(now, back, act.done, act.reveals ? secretOf(answer.body, act.reveals) : null)
}

function secretOf(body: unknown, { member, label }: { member: string; label: Wording }): Html {
  const value = (body as Record<string, string | string[]>)[member] ?? ''
  return html`<p>${label}</p><p class="secret">${typeof value === 'string' ? value : value.join(' ')}</p>`
}

/** The outcome of an act, with the way back. It is a page of its own, so that reloading a list repeats nothing. */
const told = (desk: Desk, back: string, message: Html | Wording, more: Html | null, status = 200): Promise<Response> =>
  framed(desk, {
    title: status === 200 ? texts.done : texts.notDone,
    status,
    body: html`
<section class="card">
  <div class="note ${status === 200 ? 'good' : 'error'}" role="${status === 200 ? 'status' : 'alert'}"><p>${message}</p>${more}</div>
  <p class="links"><a href="${back}">${texts.back}</a></p>
</section>`,
  })

const repeated = (form: URLSearchParams): Record<string, string> =>
  Object.fromEntries([...form].filter(([name]) => !proofFields.has(name)))

const proofFields = new Set(['password', 'factor_code', 'passkey', 'console_token', 'form_token'])

/** Ask for the password and the second factor, if there is one; for a mailed code only once the password was right. */
async function askPassword(
  desk: Desk,
  form: URLSearchParams,
  { fault = null, asksCode = false }: { fault?: Fault | null; asksCode?: boolean } = {},
): Promise<Response> {
  const { ctx } = desk.call
  const { did, tokenHash } = desk.who
  const account = await accountOf(ctx.db, did)
  const asked = account && (await askedFactors(ctx, account))
  const passkey = passkeyPart(await offerPasskey(ctx, did, () => operatorUse(did, tokenHash)))
  return framed(desk, {
    title: texts.passwordAgain,
    script: passkey === null ? undefined : passkeyScript.url,
    body: html`
<form method="post" action="/admin/act" class="card">
  ${consoleProof(desk)}
  ${hidden(repeated(form))}
  <p class="quiet">${texts.grave}</p>
  ${errorNote(fault)}
  ${passwordField({ required: true, autofocus: true, fault })}
  ${(asksCode || asked?.mailed === false) && codeField({ name: 'factor_code', label: texts.factorCode, maxLength: 100, fault })}
  <div class="actions"><button class="primary">${texts.continue}</button></div>
  ${passkey}
</form>`,
  })
}
