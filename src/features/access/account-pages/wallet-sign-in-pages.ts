/**
 * Signing in to the account page with a wallet: the page that waits for the wallet, and the form that completes the
 * sign-in.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import { beginBrowserSignIn, browserSignInOf, completeBrowserSignIn, waitScript, walletBlock } from '../oauth/oauth.ts'
import { browserHashOf, deviceOf, entryOf, formProof, readOwnForm, requireNavigation } from '../pages/pages.ts'
import { signInTexts as texts } from './sign-in-texts.ts'
import {
  errorNote,
  faultOf,
  hidden,
  rememberField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'

const PATH = '/account/sign-in/wallet'

/** The form that begins a sign-in with a wallet. `name`: the account that signs in; empty for any. */
export const walletSignInForm = (proof: Html[] | null, { name, button }: { name: string; button: Html }): Html => html`
<form method="post" action="${PATH}" class="actions">
  ${proof}
  ${name !== '' && hidden({ identifier: name })}
  ${button}
</form>`

/** Returns the page that waits for the wallet; null if this browser has no pending sign-in. */
async function waitPage(call: PageCall, requestId: string, fault: Fault | null): Promise<Response | null> {
  const { ctx } = call
  const consent = await browserSignInOf(ctx, { requestId, browserHash: browserHashOf(call) })
  if (consent === null) return null
  const fields = html`${formProof(call)}${rememberField()}`
  return page(call, {
    title: texts.walletTitle,
    status: fault?.status,
    script: waitScript.url,
    body: html`
<div class="card ask">
  <div class="tight">
    <h1>${texts.walletTitle}</h1>
    <p class="quiet">${texts.walletLead({ host: new URL(ctx.config.publicUrl).host })}</p>
  </div>
  ${errorNote(fault)}
  ${walletBlock(consent, { action: `${PATH}/complete`, label: texts.toAccount, fields })}
  <hr>
  <p class="links"><a href="/account/sign-in">${texts.anotherWay}</a></p>
</div>`,
  })
}

async function begin(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const name = (form.get('identifier') ?? '').trim().replace(/^@/, '')
  const requestId = await beginBrowserSignIn(call, browserHashOf(call), name)
  return seeOther(`${PATH}?${new URLSearchParams({ request_id: requestId })}`)
}

async function complete(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  const requestId = form.get('request_id') ?? ''
  const known = (await deviceOf(call))?.accounts ?? []
  const entry = entryOf(call, { remember: form.get('remember') === 'yes' })
  const fault = await faultOf(async () => {
    await completeBrowserSignIn(call, { requestId, browserHash: browserHashOf(call) }, async (tx, did) => {
      await entry.keep(tx, did)
      const isKnownBrowser = known.some(({ account }) => account.did === did)
      await announceSignIn(tx, call, did, 'wallet', { isKnownBrowser })
    })
    entry.tell()
  })
  if (fault === null) return seeOther('/account')
  return (await waitPage(call, requestId, fault)) ?? seeOther('/account/sign-in?done=expired')
}

export const walletSignInRoutes: Endpoint[] = [
  // Limited by address alone. Consents of apps are also limited by client, but here all users would share that limit.
  route('POST', PATH, { capability: 'walletConsent', limit: 'oauthConsentCreate', handler: begin }),
  route('GET', PATH, {
    capability: 'walletConsent',
    async handler(call) {
      requireNavigation(call)
      return (await waitPage(call, call.url.searchParams.get('request_id') ?? '', null)) ?? seeOther('/account/sign-in')
    },
  }),
  route('POST', `${PATH}/complete`, { capability: 'walletConsent', handler: complete }),
  // If a browser opens the address of the form directly, redirect it.
  route('GET', `${PATH}/complete`, { capability: 'walletConsent', handler: async () => seeOther('/account') }),
]
