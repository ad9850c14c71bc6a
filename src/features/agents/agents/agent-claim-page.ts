/** The pages on which a person enters the code that a program shows, reads what the program may do, and decides. */
import { html, plainName, type Html, type Wording } from '../../../http/html.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { page } from '../../../http/page.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { timePhrase } from '../../../http/texts.ts'
import { accountChooser, type Device } from '../../access/pages/pages.ts'
import {
  errorNote,
  field,
  hidden,
  identifierField,
  passwordField,
  type Fault,
  type PageCall,
} from '../../access/page-parts/page-parts.ts'
import { permissionList, scopeLine, type PermissionLine } from '../../access/scope-words/scope-words.ts'
import { singleScope } from '../../../protocol/scopes.ts'
import { claimTexts as texts } from './claim-texts.ts'
import type { Claim } from './agent-claim-store.ts'
import type { Registration } from './agent-registration-store.ts'

export const CLAIM_PATH = '/agent/claim'
/** Field of the decision form; absent if the box is not ticked. */
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
    label: texts.code,
    value,
    required: true,
    autofocus: value === '',
    maxLength: 16,
    digits: { pattern: String.raw`[0-9]{3}[ \-]?[0-9]{3}`, says: texts.sixDigits },
    hint: texts.codeHint,
    fault,
  })

interface EnterCodeView {
  entered: EnteredClaim
  device: Device | null
  fault: Fault | null
  /** `needed`: the chosen account has to use its wallet, so that part of the page is open. */
  wallet: 'none' | 'offered' | 'needed'
}

export function enterCodePage(call: PageCall, { entered, device, fault, wallet }: EnterCodeView): Promise<Response> {
  const { code, identifier, account } = entered
  return page(call, {
    title: texts.title,
    status: fault?.status,
    body: html`
<section class="card ask">
<form method="post" action="${CLAIM_PATH}" class="stack">
  ${hidden({ step: 'identify', ...(device !== null && { form_token: device.formToken }) })}
  <div class="tight">
    <h1>${texts.heading}</h1>
    <p class="quiet">${texts.lead({ host: new URL(call.ctx.config.publicUrl).host })}</p>
  </div>
  ${errorNote(fault)}
  ${codeField(code, fault)}
  ${
    device &&
    accountChooser(device, {
      chosen: account ?? device.known[0]!.account.did,
      missing: ({ account: { hasPassword }, isStale }) =>
        isStale ? (hasPassword ? texts.passwordAgain : texts.signInFirst) : null,
    })
  }
  ${identifierField({ value: identifier, when: 'needs-identifier', required: device === null })}
  ${passwordField({ when: 'needs-password', required: device === null, fault })}
  <div class="actions"><button class="primary">${texts.continue}</button></div>
</form>
${wallet !== 'none' && walletPart(wallet === 'needed')}
</section>`,
  })
}

const walletPart = (isOpen: boolean): Html => html`
<details class="fold"${isOpen && html` open`}>
  <summary>${texts.useWallet}</summary>
  <p class="quiet">${texts.walletHow({ page: (words) => html`<a href="/account/sign-in">${words}</a>` })}</p>
</details>`

/** The known facts about the requester. Only the claims of a trusted provider are verified. */
function whoAsks({ type, issuer, subject, email }: Registration): Wording {
  switch (type) {
    case 'identity_assertion': {
      const named = { issuer: issuer ?? '', subject: plainName(subject ?? ''), person: own }
      return email === null ? texts.vouched(named) : texts.vouchedEmail({ ...named, email: plainName(email) })
    }
    case 'service_auth':
      return texts.askedByAddress({ email: email ?? '' })
    default:
      return texts.unvouched
  }
}

/** A name that its owner has chosen, isolated because its script may have any direction. */
const own = (words: Html): Html => html`<bdi>${words}</bdi>`

const robot = html`<svg viewBox="0 0 24 24"><path d="M5 9h14v10H5zM12 9V5M9 13.5v1M15 13.5v1" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>`

const privateReads: PermissionLine = {
  what: texts.privateReads,
  more: texts.privateReadsMore,
  parts: [],
  isAlwaysShown: true,
  control: html`<input type="checkbox" name="${PRIVATE_READS}" value="yes" checked>`,
}

export interface DecisionView {
  /** Id of what was shown, for one decision. */
  pageId: string
  account: Account
  claim: Claim
  registration: Registration
  scopes: readonly string[]
}

export function decideClaimPage(
  call: PageCall,
  { pageId, account: { handle, did }, claim, registration, scopes }: DecisionView,
): Promise<Response> {
  const { openedWith, openedFrom, createdAt, expiresAt } = claim
  const { clientName } = registration
  const program = clientName === null ? openedWith && programPhrase(openedWith) : plainName(clientName)
  const account = handle ? html`<strong>@${handle}</strong>` : html`<code>${did}</code>`
  const time = timePhrase(createdAt)
  const asked = openedFrom === null ? texts.askedUnknown({ time }) : texts.askedFrom({ time, network: openedFrom })
  return page(call, {
    title: texts.decideTitle,
    body: html`
<form method="post" action="${CLAIM_PATH}" class="card ask">
  ${hidden({ step: 'decide', id: pageId })}
  <header class="asker">
    <span class="badge" aria-hidden="true">${robot}</span>
    <h1>${texts.decideTitle}</h1>
    <p class="quiet">${program === null ? texts.asUnnamed({ account }) : texts.asNamed({ account, program, name: own })} ${whoAsks(registration)}</p>
  </header>
  <p class="note warn">${texts.warning}</p>
  ${permissionList([privateReads, ...scopes.map((scope) => scopeLine(singleScope(scope), null))], {
    legend: texts.lets,
    note: texts.nothingElse,
  })}
  <div class="decision">
    <button class="primary" name="decision" value="approve">${texts.approve}</button>
    <button name="decision" value="deny">${texts.deny}</button>
  </div>
  <details class="aside">
    <summary>${texts.technical}</summary>
    <dl class="facts">
      <div><dt>${texts.askedAt}</dt><dd>${asked}</dd></div>
      ${clientName !== null && openedWith !== null && html`<div><dt>${texts.askedWith}</dt><dd>${programPhrase(openedWith)}</dd></div>`}
      <div><dt>${texts.expiresAt}</dt><dd>${timePhrase(expiresAt)}</dd></div>
      <div><dt>${texts.registration}</dt><dd><code>${registration.id}</code></dd></div>
      <div><dt>${texts.kind}</dt><dd><code>${registration.type}</code></dd></div>
      <div><dt>${texts.scopes}</dt>${scopes.map((scope) => html`<dd><code>${scope}</code></dd>`)}</div>
    </dl>
  </details>
</form>`,
  })
}

const endings = {
  approved: { status: 200, title: texts.approvedTitle, text: texts.approvedText },
  denied: { status: 200, title: texts.deniedTitle, text: texts.deniedText },
  lost: { status: 409, title: texts.lostTitle, text: texts.lostText },
  closed: { status: 403, title: texts.closedTitle, text: texts.closedText },
} as const

export type Ending = keyof typeof endings

export function decidedPage(call: PageCall, ending: Ending): Promise<Response> {
  const { status, title, text } = endings[ending]
  return page(call, {
    title,
    status,
    body: html`
<section class="card">
  <h1>${title}</h1>
  <p>${text}</p>
  <p class="links"><a href="${CLAIM_PATH}">${texts.another}</a> <a href="/account">${texts.yourAccount}</a></p>
</section>`,
  })
}
