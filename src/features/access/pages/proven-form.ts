/**
 * Forms that open another way into an account, or hide it. If the sign-in is older than an hour, the person has to
 * prove who they are again, on a page of its own that carries the fields along. That counts as a sign-in: the browser
 * gets another cookie, so that a copy of the previous one becomes useless.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { offerPasskey } from '../factors/factors.ts'
import {
  accountName,
  errorNote,
  faultOf,
  pageRefusal,
  passkeyAnswer,
  passkeyPart,
  passkeyScript,
  PENDING_ID,
  passwordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { signIn } from './devices.ts'
import { carriedFields, withoutProof } from './factor-page.ts'
import { factorTexts as texts } from './factor-texts.ts'
import { holderForm, holderOf, holderUrl, signInAgainUrl, signInUrl, type Holder } from './holders.ts'
import { entryUse } from './passkey-offer.ts'
import { withPassword } from './sign-in.ts'

/** Declare a form as `holderForm` does. An account without a password signs in with its wallet first. */
export const provenForm = (
  path: string,
  work: (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<Response>,
  options: Parameters<typeof holderForm>[2] = {},
): Endpoint =>
  holderForm(
    path,
    async (call, holder, form) => {
      if (holder.isProven) return work(call, holder, form)
      if (!holder.account.hasPassword) return seeOther(signInAgainUrl(holder.account))
      return prove(call, holder, form, work)
    },
    options,
  )

async function prove(
  call: PageCall,
  { account: { did }, isRemembered }: Holder,
  form: URLSearchParams,
  work: Parameters<typeof provenForm>[1],
): Promise<Response> {
  const again = (fault: Fault | null) => provePage(call, did, form, fault)
  if (!form.has('password') && !form.has(PENDING_ID) && passkeyAnswer(form) === null) return again(null)
  const limited = await faultOf(() => charge(call, 'createSession'))
  if (limited) return again(limited)
  return withPassword(call, form, {
    identifier: did,
    passkey: { did },
    isProof: true,
    again,
    async act(proven, enter, passedFactor) {
      if (proven.did !== did) throw pageRefusal('The form belongs to another account.')
      await signIn(call, did, { remember: isRemembered, passedFactor, enter })
      const holder = await holderOf(call, did)
      return holder ? work(call, holder, withoutProof(form)) : seeOther(await signInUrl(call, did))
    },
  })
}

/** Asks for the password, or a passkey. */
async function provePage(
  call: PageCall,
  did: Account['did'],
  form: URLSearchParams,
  fault: Fault | null,
): Promise<Response> {
  const holder = await holderOf(call, did)
  if (!holder) return seeOther(await signInUrl(call, did))
  const { account } = holder
  const { pathname, search } = call.url
  const passkey = passkeyPart(await offerPasskey(call.ctx, did, () => entryUse(call)))
  return page(call, {
    title: texts.proveTitle,
    status: fault?.status ?? 200,
    script: passkey === null ? undefined : passkeyScript.url,
    body: html`
<form method="post" action="${pathname}${search}" class="card ask">
  ${carriedFields(form)}
  <div class="tight">
    <h1>${texts.proveTitle}</h1>
    <p class="quiet">${texts.proveLead({ account: accountName(account) })}</p>
  </div>
  ${errorNote(fault)}
  <input type="hidden" autocomplete="username" value="${account.handle ?? account.did}">
  ${passwordField({ required: true, autofocus: true, fault })}
  <div class="actions"><button class="primary">${texts.proceed}</button></div>
  ${passkey}
  <p class="links"><a href="${holderUrl('/account', did)}">${texts.cancel}</a></p>
</form>`,
  })
}
