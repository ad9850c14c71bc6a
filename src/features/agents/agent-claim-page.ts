/** The pages on which a person enters the code that a program shows, reads what the program may do, and decides. */
import { html, plainName, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Context } from '../../platform/context.ts'
import type { Account } from '../accounts/accounts.ts'
import { inWords } from '../accounts/accounts.ts'
import { fixedScope } from '../oauth/oauth.ts'
import { accountChooser, errorNote, field, hidden, identifierField, passwordField, type Device, type Fault } from '../web/web.ts'
import type { Claim } from './agent-claim-store.ts'
import type { Registration } from './agent-registration-store.ts'

export const CLAIM_PATH = '/agent/claim'

/** What was entered, when the page is shown again. */
export interface EnteredClaim {
  code: string
  identifier: string
  /** The DID of an account that is signed in on the browser, or `other`; null the first time. */
  account: string | null
}

const codeField = (value: string, fault: Fault | null): Html =>
  field({
    name: 'user_code',
    label: 'Code that the program shows',
    value,
    required: true,
    autofocus: value === '',
    maxLength: 16,
    digits: { pattern: String.raw`[0-9]{3}[ \-]?[0-9]{3}`, says: 'Six digits' },
    hint: 'Six digits. Enter only a code that you asked a program for yourself.',
    fault,
  })

export function enterCodePage(
  { config }: Context,
  { entered, device, fault }: { entered: EnteredClaim; device: Device | null; fault: Fault | null },
): Response {
  const { code, identifier, account } = entered
  return page(config, {
    title: 'Confirm a program',
    status: fault?.status,
    body: html`
<form method="post" action="${CLAIM_PATH}" class="card">
  ${hidden({ step: 'identify', ...(device !== null && { form_token: device.formToken }) })}
  <div class="tight">
    <h1>Let a program act for you</h1>
    <p class="quiet">A program, such as an assistant, asks for access to your account on ${new URL(config.publicUrl).host}. You will see what it may do before you decide.</p>
  </div>
  ${errorNote(fault)}
  ${codeField(code, fault)}
  ${
    device &&
    accountChooser(device, {
      chosen: account ?? device.accounts[0]!.account.did,
      missing: ({ account: { hasPassword }, isStale }) =>
        isStale ? (hasPassword ? 'Enter your password again' : 'Sign in to your account page again first') : null,
    })
  }
  ${identifierField({ value: identifier, when: 'needs-identifier', required: device === null })}
  ${passwordField({ when: 'needs-password', required: device === null, fault })}
  <div class="actions"><button class="primary">Continue</button></div>
</form>
<section class="card">
  <h2>If your key is in a wallet</h2>
  <p class="quiet">Accounts without a password are confirmed in the wallet: open it and enter the same code there. Or <a href="/account/sign-in">sign in to your account page</a> with the wallet, and come back here.</p>
</section>`,
  })
}

/** What is known of who asks. Only what a trusted provider says is vouched for; nothing else that a program says of itself is shown. */
function whoAsks({ type, issuer, subject, email }: Registration): Html {
  switch (type) {
    case 'identity_assertion':
      return html`<strong>${issuer}</strong> says that it acts for <bdi>${plainName(subject ?? '')}</bdi>${email !== null && html` (${plainName(email)})`}.`
    case 'service_auth':
      return html`It asked for the account with the address ${email}. Nobody vouches for it.`
    default:
      return html`It did not say who it is, and nobody vouches for it.`
  }
}

const robot = html`<svg viewBox="0 0 24 24"><path d="M5 9h14v10H5zM12 9V5M9 13.5v1M15 13.5v1" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

export interface DecisionView {
  /** Names what was shown, for one decision. */
  pageId: string
  account: Account
  claim: Claim
  registration: Registration
  scopes: readonly string[]
}

export function decideClaimPage({ config }: Context, { pageId, account, claim, registration, scopes }: DecisionView): Response {
  const { openedWith, openedFrom, createdAt, expiresAt } = claim
  const { handle, did } = account
  return page(config, {
    title: 'Let this program act for you?',
    body: html`
<form method="post" action="${CLAIM_PATH}" class="card">
  ${hidden({ step: 'decide', id: pageId })}
  <div class="tight">
    <h1>Let this program act for you?</h1>
    <p class="quiet">It will act as ${handle ? html`<strong>@${handle}</strong>` : html`<code>${did}</code>`} until you end it.</p>
  </div>
  <section class="app" aria-label="The program">
    <span class="badge" aria-hidden="true">${robot}</span>
    <span class="name">${openedWith === null ? 'An unknown program' : html`It calls itself “<bdi>${plainName(openedWith)}</bdi>”`}</span>
    <span class="where">${whoAsks(registration)} It asked at ${inWords(createdAt)}, from ${openedFrom === null ? 'an unknown network' : html`the network ${openedFrom}`}.</span>
  </section>
  <p class="note warn">Approve only if you have just asked this program for a code yourself. If somebody sent you the code, deny.</p>
  <fieldset>
    <legend>It will be able to</legend>
    <ul class="permissions">
      ${scopes.map((scope) => fixedScope({ scope, grants: [scope], title: null, detail: null }))}
    </ul>
    <small>Whatever is not listed, it cannot do. Whatever is listed, it can never manage your account, your identity or other programs.</small>
  </fieldset>
  <details>
    <summary>Technical details</summary>
    <dl class="facts">
      <div><dt>Code expires at</dt><dd>${inWords(expiresAt)}</dd></div>
      <div><dt>Registration</dt><dd><code>${registration.id}</code></dd></div>
      <div><dt>Kind</dt><dd><code>${registration.type}</code></dd></div>
      <div><dt>Scopes</dt>${scopes.map((scope) => html`<dd><code>${scope}</code></dd>`)}</div>
    </dl>
  </details>
  <div class="decision">
    <button class="primary" name="decision" value="approve">Approve</button>
    <button name="decision" value="deny">Deny</button>
  </div>
</form>`,
  })
}

const endings = {
  approved: {
    status: 200,
    title: 'The program may act for you',
    text: 'You can return to your program. You can end its access at any time.',
  },
  denied: { status: 200, title: 'Denied', text: 'The program gets no access. You can close this page.' },
  lost: {
    status: 409,
    title: 'This was decided already',
    text: 'The code was used, denied or has expired in the meantime. If the program still waits, let it show a new one.',
  },
  closed: { status: 403, title: 'This is not possible', text: 'This account cannot confirm the program. Nothing was changed.' },
} as const

export type Ending = keyof typeof endings

export function decidedPage({ config }: Context, ending: Ending): Response {
  const { status, title, text } = endings[ending]
  return page(config, {
    title,
    status,
    body: html`
<section class="card">
  <h1>${title}</h1>
  <p>${text}</p>
  <p class="links"><a href="${CLAIM_PATH}">Enter another code</a> <a href="/account">Your account</a></p>
</section>`,
  })
}
