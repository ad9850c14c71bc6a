/**
 * Moving an account here, for people who have none here yet: they sign in at the old server, see the plan, and choose
 * how to sign in here. `move-page.ts` shows the move itself.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, inEnglish, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { beginMove, planMove, planOf, planWords, type MovePlan } from '../../identity/migration/migration.ts'
import { entryOf, formProof } from '../pages/pages.ts'
import {
  codeField,
  errorNote,
  faultAt,
  faultOf,
  field,
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
import { moveUrl } from './move-page.ts'

export const MOVE_HERE_PATH = '/account/move-here'
const BEGIN_PATH = `${MOVE_HERE_PATH}/begin`

/** The invite code comes along. */
const backupMoveUrl = (inviteCode: string | null): string =>
  inviteCode ? `${BACKUP_MOVE_PATH}?${new URLSearchParams({ invite_code: inviteCode })}` : BACKUP_MOVE_PATH

const hostOfServer = ({ ctx }: PageCall): string => new URL(ctx.config.publicUrl).host

function oldServerPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const inviteCode = given.get('invite_code')
  return formPage(call, {
    title: 'Move your account here',
    lead: `Your identity, followers, posts, pictures and preferences come along to ${hostOfServer(call)}. First, sign in at the server where your account is now. Nothing changes yet.`,
    action: MOVE_HERE_PATH,
    fault,
    fields: html`
  ${inviteCode && hidden({ invite_code: inviteCode })}
  ${field({
    name: 'identifier',
    label: 'Your handle now',
    value: given.get('identifier') ?? '',
    autocomplete: 'username',
    required: true,
    autofocus: fault === null,
    hint: 'As others mention you, or the DID of your account.',
    fault,
  })}
  ${passwordField({
    label: 'Password at the old server',
    required: true,
    hint: 'The main password: an app password cannot move an account. It is passed on to the old server and not stored here.',
    fault,
  })}
  ${
    fault?.field === 'auth_factor' &&
    field({
      name: 'auth_factor',
      label: 'Sign-in code from the old server',
      autocomplete: 'one-time-code',
      required: true,
      hint: 'The old server has mailed it to you. Please enter the password again, too.',
      fault,
    })
  }`,
    submit: 'Show me the plan',
    links: html`<a href="${backupMoveUrl(inviteCode)}">My old server is gone</a> <a href="/account/sign-up">Create a new account</a> <a href="/account/sign-in">I have an account here</a>`,
  })
}

async function plan(call: PageCall, form: URLSearchParams): Promise<Response> {
  const authFactorToken = form.get('auth_factor')?.trim()
  let made: MovePlan | null = null
  const fault = await faultOf(async () => {
    charge(call, 'planMove')
    made = await planMove(call.ctx, {
      identifier: form.get('identifier') ?? '',
      password: form.get('password') ?? '',
      ...(authFactorToken && { authFactorToken }),
    })
  })
  return made === null ? oldServerPage(call, form, fault) : planPage(call, made, form, null)
}

function planPage(call: PageCall, plan: MovePlan, given: URLSearchParams, fault: Fault | null): Response {
  return page(call.ctx.config, {
    title: 'The plan of your move',
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Move ${plan.handle === null ? plan.did : `@${plan.handle}`} here</h1>
    <p class="quiet">From ${plan.host} to ${hostOfServer(call)}${counts(plan)}.</p>
  </div>
  ${section('Comes along', planWords.comes)}
  ${section('Does not come along', planWords.stays)}
  ${section('The old server', planWords.oldServer)}
  <p class="note">Make a backup first: <a href="${plan.backupUrl}" rel="noreferrer">download your posts and records</a>. If the old server breaks in the middle, the move can continue from that file.</p>
</section>
<form method="post" action="${BEGIN_PATH}" class="card">
  ${formProof(call)}
  ${hidden({ plan: plan.plan })}
  <h2>Your account here</h2>
  ${errorNote(fault)}
  ${accountFields(call, plan, given, fault)}
  <div class="actions"><button class="primary">Begin the move</button></div>
  <p class="quiet">You may close the page afterwards: the move continues. Your identity changes only when you enter a code that the old server mails to you.</p>
</form>`,
  })
}

const counts = ({ records, blobs }: MovePlan): Html | null =>
  records === null
    ? null
    : html`: ${records.toLocaleString('en')} records${blobs !== null && ` and ${blobs.toLocaleString('en')} pictures and videos`}`

const section = (title: string, lines: readonly string[]): Html => html`
  <section class="stack">
    <h2>${title}</h2>
    <ul class="findings">${lines.map((line) => html`<li>${line}</li>`)}</ul>
  </section>`

function accountFields({ ctx }: PageCall, plan: MovePlan, given: URLSearchParams, fault: Fault | null): Html {
  const { inviteCodeRequired, availableUserDomains } = ctx.config
  return html`
  ${field({
    name: 'handle',
    label: 'Handle here',
    value: given.get('handle') ?? suggestedHandle(plan, availableUserDomains),
    required: true,
    hint: `Under ${availableUserDomains[0]}, or a domain of your own that names your account already.`,
    fault,
  })}
  ${field({ name: 'email', label: 'Email address', type: 'email', value: given.get('email') ?? plan.email ?? '', autocomplete: 'email', required: true, hint: 'We send codes and security notices to it. It is not public.', fault })}
  ${newPasswordField({ label: 'New password for this server', fault })}
  ${(given.has('factor_code') || fault?.field === 'factor_code') && codeField({ name: 'factor_code', label: 'Sign-in code', hint: 'Please enter the password again, too.', fault })}
  ${inviteCodeRequired && field({ name: 'invite_code', label: 'Invite code', value: given.get('invite_code') ?? '', required: true, hint: 'From someone who has an account here, or from the operator of this server.', fault })}
  ${
    plan.method === 'plc' &&
    html`
  ${
    plan.keys !== null &&
    html`
  <details${(given.has('keep_key') || (fault !== null && inEnglish(fault.message).startsWith('keepKeys'))) && html` open`}>
    <summary>Keys that control your identity: ${plan.keys.stay.length} will stay, ${plan.keys.go.length} will go</summary>
    <div class="stack">${keyChoice(plan.keys, given)}</div>
  </details>`
  }
  <details${(given.get('wallet_key') || fault?.field === 'wallet_key') && html` open`}>
    <summary>Add a recovery key of my own (recommended)</summary>
    <div class="stack">
      <p class="quiet">With a key of your own, no server can keep you from moving again. A wallet makes one, and so does “holdfast migrate key”.</p>
      ${field({ name: 'wallet_key', label: 'Public key', value: given.get('wallet_key') ?? '', maxLength: 200, hint: 'It begins with did:key:z. The secret key stays with you.', fault })}
    </div>
  </details>`
  }`
}

/** The name before the first dot, under our domain; the whole handle if it is a domain of the holder's own. */
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
    charge(call, 'createAccount')
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
  if (again === null)
    return oldServerPage(call, form, faultAt(null, 'The plan has expired. Please sign in at the old server again.'))
  return planPage(call, again, form, fault)
}

export const moveHereRoutes: Endpoint[] = [
  ...formRoutes(MOVE_HERE_PATH, { show: oldServerPage, send: plan }),
  ...formRoutes(BEGIN_PATH, { show: () => seeOther(MOVE_HERE_PATH), send: begin }),
]
