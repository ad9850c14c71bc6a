/** The sign-in page of the account page. */
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { hasKnownWallets } from '../wallet-proofs/wallet-proofs.ts'
import { BACKUP_MOVE_PATH } from './backup-move-pages.ts'
import { formRoutes } from './form-page.ts'
import { signInTexts as texts } from './sign-in-texts.ts'
import { walletSignInForm } from './wallet-sign-in-pages.ts'
import { deviceOf, formProof, offerEntry, signIn, withPassword } from '../pages/pages.ts'
import {
  accountName,
  errorNote,
  faultAt,
  faultTexts,
  faultOf,
  goodNote,
  identifierField,
  passkeyPart,
  passkeyScript,
  passwordField,
  rememberField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'

const notices = new Map([
  ['reset', texts.wasReset],
  ['signed-out', texts.signedOut],
  ['expired', texts.notCompleted],
])

/** Also says what brings back an account that was deleted by mistake. */
const deletedNotice = ({ ctx }: PageCall): Html =>
  html`${texts.wasDeleted} ${ctx.config.repos.importsEnabled && texts.bringBack({ back: (words) => html`<a href="${BACKUP_MOVE_PATH}">${words}</a>` })}`

async function signInPage(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const account = await accountAgain(call, given.get('identifier') ?? '')
  const proof = formProof(call)
  const done = given.get('done') ?? ''
  const notice = goodNote(done === 'deleted' ? deletedNotice(call) : (notices.get(done) ?? null))
  const hasWallets = await hasKnownWallets(call.ctx.db)
  const passkey = passkeyPart(await offerEntry(call))
  return page(call, {
    title: texts.title,
    status: fault?.status,
    script: passkey === null ? undefined : passkeyScript.url,
    body:
      account?.hasPassword === false
        ? againPart(proof, account)
        : html`
<section class="card ask">
  ${passwordPart(proof, given, { notice, fault, passkey })}
  ${hasWallets && walletSignInForm(proof, { name: '', button: html`<button class="link">${texts.walletInstead}</button>` })}
  <hr>
  <p class="links"><a href="/account/reset-password">${texts.forgot}</a> <a href="/account/sign-up">${texts.create}</a> ${hasWallets && call.ctx.capabilities.has('escrow') && html`<a href="/account/recovery">${texts.lostWallet}</a>`}</p>
</section>`,
  })
}

/** Returns the account of that name if this browser knows it and its holder has to sign in again. */
async function accountAgain(call: PageCall, name: string): Promise<Account | null> {
  const device = await deviceOf(call)
  const found = device?.known.find(({ account: { did, handle } }) => name === did || name === handle)
  return found && !found.isProven ? found.account : null
}

const againPart = (proof: Html[] | null, account: Account): Html => html`
<section class="card ask">
  <div class="tight">
    <h1>${texts.againTitle}</h1>
    <p class="quiet">${texts.againLead({ account: accountName(account) })}</p>
  </div>
  ${walletSignInForm(proof, { name: account.did, button: html`<button class="primary">${texts.useWallet}</button>` })}
  <hr>
  <p class="links"><a href="/account/sign-in">${texts.otherAccount}</a></p>
</section>`

interface Shown {
  notice: Html | null
  fault: Fault | null
  passkey: Html | null
}

function passwordPart(proof: Html[] | null, given: URLSearchParams, { notice, fault, passkey }: Shown): Html {
  const identifier = given.get('identifier') ?? ''
  const isTyped = identifier !== ''
  return html`
<form method="post" action="/account/sign-in" class="stack">
  ${proof}
  <div class="tight">
    <h1>${texts.title}</h1>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${notice}
  ${errorNote(fault)}
  ${identifierField({ value: identifier, required: true, autofocus: !isTyped })}
  ${passwordField({ required: true, autofocus: isTyped, fault })}
  ${rememberField(given.get('remember') === 'yes')}
  <div class="actions"><button class="primary">${texts.title}</button></div>
  ${passkey}
</form>`
}

const takenDown = faultAt(null, faultTexts.takenDown, 200)

async function enter(call: PageCall, form: URLSearchParams): Promise<Response> {
  const limited = await faultOf(() => charge(call, 'createSession'))
  if (limited) return signInPage(call, form, limited)
  const again = (fault: Fault) => signInPage(call, form, fault)
  return withPassword(call, form, {
    identifier: form.get('identifier') ?? '',
    passkey: { did: null },
    again,
    async act(account, enter, passedFactor) {
      if (account.takedownRef !== null) return again(takenDown)
      await signIn(call, account.did, { remember: form.get('remember') === 'yes', passedFactor, enter })
      return seeOther('/account')
    },
  })
}

export const signInRoutes = formRoutes('/account/sign-in', { show: signInPage, send: enter })
