/** The pages on which a person enters the code that a program shows, reads what the program may do, and decides. */
import { html, plainName, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Context } from '../../../platform/context.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { timeInWords } from '../../../base/time-words.ts'
import { accountChooser, type Device } from '../../access/pages/pages.ts'
import {
  errorNote,
  field,
  hidden,
  identifierField,
  passwordField,
  type Fault,
} from '../../access/page-parts/page-parts.ts'
import { permissionList, scopeLine, type PermissionLine } from '../../access/scope-words/scope-words.ts'
import type { Claim } from './agent-claim-store.ts'
import type { Registration } from './agent-registration-store.ts'

export const CLAIM_PATH = '/agent/claim'
/** Field of the decision: absent if the box is not ticked. */
export const PRIVATE_READS = 'private_reads'

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
    hint: 'Enter only a code that you requested from a program yourself.',
    fault,
  })

interface EnterCodeView {
  entered: EnteredClaim
  device: Device | null
  fault: Fault | null
  /** `needed`: by the account that was chosen, so the part about it is open. */
  wallet: 'none' | 'offered' | 'needed'
}

export function enterCodePage({ config }: Context, { entered, device, fault, wallet }: EnterCodeView): Response {
  const { code, identifier, account } = entered
  return page(config, {
    title: 'Confirm a program',
    status: fault?.status,
    body: html`
<section class="card ask">
<form method="post" action="${CLAIM_PATH}" class="stack">
  ${hidden({ step: 'identify', ...(device !== null && { form_token: device.formToken }) })}
  <div class="tight">
    <h1>Let a program act for you</h1>
    <p class="quiet">It requests access to your account on ${new URL(config.publicUrl).host}. You can review its permissions before you decide.</p>
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
${wallet !== 'none' && walletPart(wallet === 'needed')}
</section>`,
  })
}

const walletPart = (isOpen: boolean): Html => html`
<details class="fold"${isOpen && html` open`}>
  <summary>Use your wallet instead</summary>
  <p class="quiet">Open your wallet and enter the same code there. Or <a href="/account/sign-in">sign in to your account page</a> with the wallet, then come back.</p>
</details>`

/** The known facts about the requester. Only the claims of a trusted provider are verified. */
function whoAsks({ type, issuer, subject, email }: Registration): Html {
  switch (type) {
    case 'identity_assertion':
      return html`<strong>${issuer}</strong> says that it acts for <bdi>${plainName(subject ?? '')}</bdi>${email !== null && html` (${plainName(email)})`}.`
    case 'service_auth':
      return html`It requested access to the account with the address ${email}. No identity provider vouches for it.`
    default:
      return html`No identity provider vouches for it.`
  }
}

const robot = html`<svg viewBox="0 0 24 24"><path d="M5 9h14v10H5zM12 9V5M9 13.5v1M15 13.5v1" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const privateReads: PermissionLine = {
  what: 'Read private data',
  more: 'Notifications, bookmarks, mutes, drafts, contacts and age checks. Untick this if the program does not need them.',
  parts: [],
  isAlwaysShown: true,
  control: html`<input type="checkbox" name="${PRIVATE_READS}" value="yes" checked>`,
}

export interface DecisionView {
  /** Names what was shown, for one decision. */
  pageId: string
  account: Account
  claim: Claim
  registration: Registration
  scopes: readonly string[]
}

export function decideClaimPage(
  { config }: Context,
  { pageId, account, claim, registration, scopes }: DecisionView,
): Response {
  const { openedWith, openedFrom, createdAt, expiresAt } = claim
  const { handle, did } = account
  const name = registration.clientName ?? openedWith
  return page(config, {
    title: 'Let this program act for you?',
    body: html`
<form method="post" action="${CLAIM_PATH}" class="card ask">
  ${hidden({ step: 'decide', id: pageId })}
  <header class="asker">
    <span class="badge" aria-hidden="true">${robot}</span>
    <h1>Let this program act for you?</h1>
    <p class="quiet">As ${handle ? html`<strong>@${handle}</strong>` : html`<code>${did}</code>`}, until you end it. ${name === null ? 'It did not give a name.' : html`It calls itself “<bdi>${plainName(name)}</bdi>”.`} ${whoAsks(registration)}</p>
  </header>
  <p class="note warn">Approve only if you have just requested a code from this program yourself. If someone sent you the code, deny.</p>
  ${permissionList(
    [privateReads, ...scopes.map((scope) => scopeLine({ scope, grants: [scope], title: null, detail: null }, null))],
    {
      legend: 'This lets the program',
      note: 'It can do nothing else, and it can never manage your account, your identity or other programs.',
    },
  )}
  <div class="decision">
    <button class="primary" name="decision" value="approve">Approve</button>
    <button name="decision" value="deny">Deny</button>
  </div>
  <details class="aside">
    <summary>Technical details</summary>
    <dl class="facts">
      <div><dt>Asked at</dt><dd>${timeInWords(createdAt)}${name !== openedWith && openedWith !== null && html`, with ${openedWith}`}, from ${openedFrom === null ? 'an unknown network' : html`the network ${openedFrom}`}</dd></div>
      <div><dt>Code expires at</dt><dd>${timeInWords(expiresAt)}</dd></div>
      <div><dt>Registration</dt><dd><code>${registration.id}</code></dd></div>
      <div><dt>Kind</dt><dd><code>${registration.type}</code></dd></div>
      <div><dt>Scopes</dt>${scopes.map((scope) => html`<dd><code>${scope}</code></dd>`)}</div>
    </dl>
  </details>
</form>`,
  })
}

const endings = {
  approved: {
    status: 200,
    title: 'The program now has access',
    text: 'You can return to your program. You can end its access at any time.',
  },
  denied: { status: 200, title: 'Denied', text: 'The program gets no access. You can close this page.' },
  lost: {
    status: 409,
    title: 'This was decided already',
    text: 'The code was used or denied, or has expired. If the program is still waiting, request a new one from it.',
  },
  closed: {
    status: 403,
    title: 'This is not possible',
    text: 'This account cannot confirm the program. Nothing was changed.',
  },
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
