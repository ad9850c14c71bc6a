/**
 * The pages for moving an account here, for people who have none here yet: they sign in at the old server, see the
 * plan, and choose how to sign in here. `move-page.ts` shows the move itself.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, inEnglish, type Html, type Phrase, type Wording } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { beginMove, planMove, planOf, planWords, type MovePlan } from '../../identity/migration/migration.ts'
import { entryOf, formProof } from '../pages/pages.ts'
import {
  accountName,
  codeField,
  errorNote,
  faultAt,
  faultOf,
  field,
  fieldTexts,
  hidden,
  newPasswordField,
  passwordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { BACKUP_MOVE_PATH } from './backup-move-pages.ts'
import { formPage, formRoutes } from './form-page.ts'
import { chosenKeys, keyChoice } from './key-choice.ts'
import { moveHereTexts as texts } from './move-here-texts.ts'
import { moveUrl } from './move-page.ts'

export const MOVE_HERE_PATH = '/account/move-here'
const BEGIN_PATH = `${MOVE_HERE_PATH}/begin`

/** Address of the page for moving with a backup. It keeps the invite code. */
const backupMoveUrl = (inviteCode: string | null): string =>
  inviteCode ? `${BACKUP_MOVE_PATH}?${new URLSearchParams({ invite_code: inviteCode })}` : BACKUP_MOVE_PATH

const hostOfServer = ({ ctx }: PageCall): string => new URL(ctx.config.publicUrl).host

function oldServerPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const inviteCode = given.get('invite_code')
  return formPage(call, {
    title: texts.title,
    lead: texts.lead({ host: hostOfServer(call) }),
    action: MOVE_HERE_PATH,
    fault,
    fields: html`
  ${inviteCode && hidden({ invite_code: inviteCode })}
  ${field({
    name: 'identifier',
    label: texts.handleNow,
    value: given.get('identifier') ?? '',
    autocomplete: 'username',
    required: true,
    autofocus: fault === null,
    hint: texts.handleNowHint,
    fault,
  })}
  ${passwordField({
    label: texts.oldPassword,
    required: true,
    hint: texts.oldPasswordHint,
    fault,
  })}
  ${
    fault?.field === 'auth_factor' &&
    field({
      name: 'auth_factor',
      label: texts.oldFactor,
      autocomplete: 'one-time-code',
      required: true,
      hint: texts.oldFactorHint,
      fault,
    })
  }`,
    submit: texts.showPlan,
    links: html`<a href="${backupMoveUrl(inviteCode)}">${texts.oldIsGone}</a> <a href="/account/sign-up">${texts.createAccount}</a> <a href="/account/sign-in">${texts.haveAccount}</a>`,
  })
}

async function plan(call: PageCall, form: URLSearchParams): Promise<Response> {
  const authFactorToken = form.get('auth_factor')?.trim()
  let made: MovePlan | null = null
  const fault = await faultOf(async () => {
    await charge(call, 'planMove')
    made = await planMove(call.ctx, {
      identifier: form.get('identifier') ?? '',
      password: form.get('password') ?? '',
      ...(authFactorToken && { authFactorToken }),
    })
  })
  return made === null ? oldServerPage(call, form, fault) : planPage(call, made, form, null)
}

function planPage(call: PageCall, plan: MovePlan, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  return page(call, {
    title: texts.planTitle,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.planHeading({ account: accountName(plan) })}</h1>
    <p class="quiet">${counts(plan, hostOfServer(call))}</p>
  </div>
  ${section(texts.comes, planWords.comes)}
  ${section(texts.stays, planWords.stays)}
  ${section(texts.oldServer, planWords.oldServer)}
  <p class="note">${texts.backupFirst({ file: (words) => html`<a href="${plan.backupUrl}" rel="noreferrer">${words}</a>` })}</p>
</section>
<form method="post" action="${BEGIN_PATH}" class="card">
  ${formProof(call)}
  ${hidden({ plan: plan.plan })}
  <h2>${texts.yourAccount}</h2>
  ${errorNote(fault)}
  ${accountFields(call, plan, given, fault)}
  <div class="actions"><button class="primary">${texts.begin}</button></div>
  <p class="quiet">${texts.beginAbout}</p>
</form>`,
  })
}

/** Says where the account moves, and how much data comes along, as far as the old server tells. */
function counts({ host, records, blobs }: MovePlan, here: string): Html {
  const way = { host, here }
  if (records === null) return html`${texts.fromTo(way)}`
  return html`${texts.fromToRecords({ ...way, count: records })}${blobs !== null && html` ${texts.pictures({ count: blobs })}`}`
}

function section<Name extends keyof typeof texts>(title: Wording, lines: Readonly<Record<Name, string>>): Html {
  const names = Object.keys(lines) as Name[]
  return html`
  <section class="stack">
    <h2>${title}</h2>
    <ul class="findings">${names.map((name) => html`<li>${texts[name] as Phrase}</li>`)}</ul>
  </section>`
}

function accountFields({ ctx }: PageCall, plan: MovePlan, given: URLSearchParams, fault: Fault | null): Html {
  const { inviteCodeRequired, availableUserDomains } = ctx.config
  return html`
  ${field({
    name: 'handle',
    label: texts.handleHere,
    value: given.get('handle') ?? suggestedHandle(plan, availableUserDomains),
    required: true,
    hint: texts.handleHereHint({ domain: availableUserDomains[0]! }),
    fault,
  })}
  ${field({ name: 'email', label: fieldTexts.email, type: 'email', value: given.get('email') ?? plan.email ?? '', autocomplete: 'email', required: true, hint: texts.emailHint, fault })}
  ${newPasswordField({ label: texts.newPassword, fault })}
  ${(given.has('factor_code') || fault?.field === 'factor_code') && codeField({ name: 'factor_code', label: texts.factor, hint: texts.factorHint, fault })}
  ${inviteCodeRequired && field({ name: 'invite_code', label: texts.invite, value: given.get('invite_code') ?? '', required: true, hint: texts.inviteHint, fault })}
  ${
    plan.method === 'plc' &&
    html`
  ${
    plan.keys !== null &&
    html`
  <details${(given.has('keep_key') || (fault !== null && inEnglish(fault.message).startsWith('keepKeys'))) && html` open`}>
    <summary>${texts.keys({ stay: plan.keys.stay.length, go: plan.keys.go.length })}</summary>
    <div class="stack">${keyChoice(plan.keys, given)}</div>
  </details>`
  }
  <details${(given.get('wallet_key') || fault?.field === 'wallet_key') && html` open`}>
    <summary>${texts.addKey}</summary>
    <div class="stack">
      <p class="quiet">${texts.addKeyAbout}</p>
      ${field({ name: 'wallet_key', label: texts.publicKey, value: given.get('wallet_key') ?? '', maxLength: 200, hint: texts.publicKeyHint, fault })}
    </div>
  </details>`
  }`
}

/**
 * Suggests a handle: the name before the first dot, under our domain, or the whole handle if it is a domain of the
 * holder's own.
 */
function suggestedHandle({ handle, host }: MovePlan, [domain]: readonly string[]): string {
  if (handle === null) return ''
  const isOfHost = handle.endsWith(`.${host}`) || handle.endsWith('.bsky.social')
  return isOfHost ? `${handle.split('.')[0]}.${domain}` : handle
}

async function begin(call: PageCall, form: URLSearchParams): Promise<Response> {
  const recoveryKey = (form.get('wallet_key') ?? '').trim()
  const inviteCode = form.get('invite_code')?.trim()
  const token = form.get('plan') ?? ''
  const keepKeys = chosenKeys(form)
  let did: string | null = null
  const fault = await faultOf(async () => {
    await charge(call, 'createAccount')
    const entry = entryOf(call, { remember: true })
    const made = await beginMove(
      call,
      {
        plan: token,
        handle: (form.get('handle') ?? '').trim().replace(/^@/, ''),
        email: (form.get('email') ?? '').trim(),
        password: form.get('password') ?? '',
        authFactorToken: form.get('factor_code') ?? undefined,
        ...(inviteCode !== undefined && { inviteCode }),
        ...(recoveryKey !== '' && { recoveryKey }),
        ...(keepKeys !== undefined && { keepKeys }),
      },
      (tx, did) => entry.keep(tx, did),
    )
    entry.tell()
    did = made.did
  })
  if (did !== null) return seeOther(moveUrl(did))
  const again = await planOf(call.ctx, token)
  if (again === null) return oldServerPage(call, form, faultAt(null, texts.expired))
  return planPage(call, again, form, fault)
}

export const moveHereRoutes: Endpoint[] = [
  ...formRoutes(MOVE_HERE_PATH, { show: oldServerPage, send: plan }),
  ...formRoutes(BEGIN_PATH, { show: () => seeOther(MOVE_HERE_PATH), send: begin }),
]
