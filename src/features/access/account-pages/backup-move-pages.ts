/**
 * The pages for moving an account here whose old server no longer exists, with a key that may change its identity. The
 * backup is uploaded on the page of the move (`move-page.ts`), once the account is here.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import {
  beginMoveWithKey,
  offerIdentity,
  type MoveView,
  type OfferRequest,
} from '../../identity/migration/migration.ts'
import {
  errorNote,
  faultOf,
  field,
  fieldTexts,
  hidden,
  newPasswordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { entryOf, formProof } from '../pages/pages.ts'
import { formPage, formRoutes } from './form-page.ts'
import { hasChoice, keyChoice } from './key-choice.ts'
import { moveUrl } from './move-page.ts'
import { ownKeyTexts as texts } from './own-key-texts.ts'
import { holderSignature, signatureFields } from './own-signature.ts'
import { signUpTexts } from './sign-up-texts.ts'

export const BACKUP_MOVE_PATH = '/account/move-here/backup'
const BEGIN_PATH = `${BACKUP_MOVE_PATH}/begin`
const MAX_KEY_CHARS = 200

type Change = Pick<MoveView, 'operation' | 'agreement' | 'did'> & { keys: NonNullable<MoveView['keys']> }

const hostOfServer = ({ ctx }: PageCall): string => new URL(ctx.config.publicUrl).host

/** The fields of the first page, and the keys that were ticked on the second. */
const wishIn = (form: URLSearchParams): OfferRequest => ({
  identifier: (form.get('identifier') ?? '').trim(),
  handle: (form.get('handle') ?? '').trim().replace(/^@/, ''),
  recoveryKey: (form.get('wallet_key') ?? '').trim(),
  keepKeys: [...new Set(form.getAll('keep_key'))],
})
const wishFields: readonly (string | null)[] = ['identifier', 'handle', 'wallet_key']

function identityPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const { identifier, handle, recoveryKey } = wishIn(given)
  const inviteCode = given.get('invite_code')
  return formPage(call, {
    title: texts.title,
    lead: texts.lead({ host: hostOfServer(call) }),
    action: BACKUP_MOVE_PATH,
    fault,
    fields: html`
  ${inviteCode && hidden({ invite_code: inviteCode })}
  ${field({ name: 'identifier', label: texts.account, value: identifier, autocomplete: 'username', required: true, autofocus: fault === null, hint: texts.accountHint, fault })}
  ${field({ name: 'handle', label: texts.handle, value: handle, required: true, hint: texts.handleHint({ domain: call.ctx.config.availableUserDomains[0] }), fault })}
  ${field({ name: 'wallet_key', label: texts.publicKey, value: recoveryKey, required: true, maxLength: MAX_KEY_CHARS, hint: texts.publicKeyHint, fault })}`,
    submit: texts.show,
    links: html`<a href="/account/move-here">${texts.serverWorks}</a>`,
  })
}

/** Shows the change of the identity, or the first page again if its fields have a fault. */
async function show(call: PageCall, form: URLSearchParams, fault: Fault | null): Promise<Response> {
  let change: Change | null = null
  const refused = await faultOf(async () => {
    change = await offerIdentity(call.ctx, wishIn(form))
  })
  return change === null ? identityPage(call, form, refused) : changePage(call, change, form, fault)
}

function changePage(call: PageCall, change: Change, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const { identifier, handle, recoveryKey } = wishIn(given)
  const { keys } = change
  const inviteCode = given.get('invite_code') ?? ''
  const wish = { identifier, handle, wallet_key: recoveryKey }
  const staying = keys.stay.filter(({ isChoice }) => isChoice).map(({ key }) => hidden({ keep_key: key }))
  return page(call, {
    title: texts.changeTitle,
    wide: true,
    status: fault?.status,
    body: html`
<form method="post" action="${BACKUP_MOVE_PATH}" class="card">
  ${formProof(call)}
  ${hidden({ ...wish, ...(inviteCode !== '' && { invite_code: inviteCode }) })}
  <div class="tight">
    <h1>${texts.changeTitle}</h1>
    <p class="quiet">${texts.changeLead({ account: change.did, host: hostOfServer(call), handle: `@${handle}` })}</p>
  </div>
  <h2>${texts.keys}</h2>
  ${keyChoice(keys)}
  ${hasChoice(keys) && html`<div><button class="small">${texts.saveKeys}</button></div>`}
</form>
<form method="post" action="${BEGIN_PATH}" class="card">
  ${formProof(call)}
  ${hidden(wish)}${staying}
  ${errorNote(fault)}
  <h2>${texts.yourAccount}</h2>
  ${field({ name: 'email', label: fieldTexts.email, type: 'email', value: given.get('email') ?? '', autocomplete: 'email', required: true, hint: signUpTexts.emailHint, fault })}
  ${newPasswordField({ label: fieldTexts.newPassword, fault })}
  ${call.ctx.config.inviteCodeRequired && field({ name: 'invite_code', label: signUpTexts.inviteCode, value: inviteCode, required: true, hint: signUpTexts.inviteHint, fault })}
  <h2>${texts.sign}</h2>
  ${signatureFields(change, fault)}
  <div class="actions"><button class="primary">${texts.begin}</button></div>
  <p class="quiet">${texts.next}</p>
</form>`,
  })
}

async function offer(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(() => charge(call, 'reserveSigningKey'))
  return fault === null ? show(call, form, null) : identityPage(call, form, fault)
}

async function begin(call: PageCall, form: URLSearchParams): Promise<Response> {
  // Do not show the change again, because that would ask the directory and reserve a key.
  const limited = await faultOf(() => charge(call, 'createAccount'))
  if (limited) return identityPage(call, form, limited)
  const wish = wishIn(form)
  const inviteCode = form.get('invite_code')?.trim()
  let did: string | null = null
  const fault = await faultOf(async () => {
    const entry = entryOf(call, { remember: true })
    const made = await beginMoveWithKey(
      call,
      {
        ...wish,
        operation: await holderSignature(form, () => offerIdentity(call.ctx, wish)),
        email: (form.get('email') ?? '').trim(),
        password: form.get('password') ?? '',
        ...(inviteCode !== undefined && { inviteCode }),
      },
      (tx, did) => entry.keep(tx, did),
    )
    entry.tell()
    did = made.did
  })
  if (did !== null) return seeOther(moveUrl(did))
  return wishFields.includes(fault?.field ?? null) ? identityPage(call, form, fault) : show(call, form, fault)
}

export const backupMoveRoutes: Endpoint[] = [
  ...formRoutes(BACKUP_MOVE_PATH, { show: identityPage, send: offer }),
  ...formRoutes(BEGIN_PATH, { show: () => seeOther(BACKUP_MOVE_PATH), send: begin }),
]
