/**
 * The page of shared accounts: who acts for the account, for whom the account acts, and the invitations on both sides.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { factsPhrase } from '../../../http/texts.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  acceptDelegation,
  endDelegation,
  inviteDelegate,
  listDelegates,
  listSharedAccounts,
  type ListedDelegation,
} from '../delegations/delegations.ts'
import {
  accountName,
  day,
  errorNote,
  faultOf,
  field,
  goodNote,
  hidden,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderForm, holderPage, holderUrl, provenForm, type Holder } from '../pages/pages.ts'
import { accountForm, accountUrl, type AccountView } from './account-view.ts'
import { delegateActsUrl } from './delegate-acts-page.ts'
import { formAddress } from './form-page.ts'
import { foldedScopes, presetBoxes, wantedTerms } from './scope-parts.ts'
import { sharingTexts as texts } from './sharing-texts.ts'

const PATH = '/account/sharing'

export const sharingUrl = (did: Did, more: Record<string, string> = {}): string => holderUrl(PATH, did, more)

export async function sharingOf(ctx: Context, did: Did): Promise<AccountView['sharing']> {
  const [delegates, shared] = await Promise.all([listDelegates(ctx, did), listSharedAccounts(ctx, did)])
  return { delegates, shared }
}

/** The section of the account page; null while nothing is shared. */
export function sharingPart(did: Did, { delegates, shared }: AccountView['sharing']): Html | null {
  if (delegates.length + shared.length === 0) return null
  const waiting = shared.filter(({ status }) => status === 'invited').length
  return html`
<section class="card" id="sharing">
  <div class="tight"><h2>${texts.title}</h2><p class="quiet">${texts.lead}</p></div>
  ${waiting > 0 && html`<p class="note">${texts.waiting({ count: waiting })}</p>`}
  <p class="links"><a href="${sharingUrl(did)}">${texts.manage}</a></p>
</section>`
}

interface Shown {
  fault?: Fault | null
  notice?: Phrase | null
  typed?: URLSearchParams | null
}

async function sharingPage(
  call: PageCall,
  holder: Holder,
  { fault = null, notice = null, typed = null }: Shown = {},
): Promise<Response> {
  const { account } = holder
  const { delegates, shared } = await sharingOf(call.ctx, account.did)
  return page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1>${texts.title}</h1>
    <p><strong>${accountName(account)}</strong></p>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  <p class="links"><a href="${accountUrl(account.did)}#sharing">${texts.back}</a></p>
</section>
${delegatesPart(holder, delegates, fault, typed)}
${sharedPart(holder, shared)}`,
  })
}

/** The other account of a delegation, by its handle if it has one. */
const otherName = ({ handle }: { handle: string | null }, did: Did | null): string | Phrase =>
  handle === null ? (did ?? texts.gone) : `@${handle}`

// Who acts for the account

function delegatesPart(
  holder: Holder,
  delegates: readonly ListedDelegation[],
  fault: Fault | null,
  typed: URLSearchParams | null,
): Html {
  const { did } = holder.account
  const byEnd = Map.groupBy(delegates, ({ status }) => status === 'ended')
  const [present, ended] = [byEnd.get(false) ?? [], byEnd.get(true) ?? []]
  return html`
<section class="card" id="delegates">
  <div class="tight"><h2>${texts.delegates}</h2><p class="quiet">${texts.delegatesLead}</p></div>
  ${present.length === 0 ? html`<p class="note">${texts.noDelegates}</p>` : html`<ul class="list">${present.map((one) => delegateRow(holder, one))}</ul>`}
  ${inviteForm(holder, fault, typed)}
  ${ended.length > 0 && html`<details><summary>${texts.ended}</summary><ul class="list">${ended.map((one) => endedRow(did, one))}</ul></details>`}
  ${present.length + ended.length > 0 && html`<p class="links"><a href="${delegateActsUrl(did)}">${texts.allDid}</a></p>`}
</section>`
}

/** When the delegation began, and when it ends or ended. */
const timesOf = ({ status, invitedAt, acceptedAt, expiresAt }: ListedDelegation): Html => html`
    <small>${factsPhrase([
      status === 'invited'
        ? texts.invited({ day: day(invitedAt) })
        : texts.since({ day: day(acceptedAt ?? invitedAt) }),
      ...(expiresAt === null ? [] : [texts.until({ day: day(expiresAt) })]),
    ])}</small>`

function delegateRow(holder: Holder, one: ListedDelegation): Html {
  const account = otherName(one, one.delegateDid)
  const isInvited = one.status === 'invited'
  const deed = isInvited ? texts.withdraw : texts.end
  return html`
<li>
  <div class="body">
    <strong>${account}</strong>
    ${timesOf(one)}
    ${foldedScopes(texts.theyMay, one.scope)}
    ${!isInvited && html`<a href="${delegateActsUrl(holder.account.did, { delegation: one.id })}"><small>${texts.theyDid}</small></a>`}
  </div>
  ${accountForm(holder, 'sharing/end', html`${hidden({ id: one.id })}<button class="small danger" aria-label="${texts.deedAbout({ deed, account })}">${deed}</button>`)}
</li>`
}

const enders: Readonly<Record<NonNullable<ListedDelegation['endedBy']>, Phrase>> = {
  holder: texts.byHolder,
  delegate: texts.byDelegate,
  operator: texts.byOperator,
  password_reset: texts.byReset,
  time: texts.byTime,
  deletion: texts.byDeletion,
}

const endedRow = (did: Did, one: ListedDelegation): Html => html`
<li>
  <div class="body">
    <strong>${otherName(one, one.delegateDid)}</strong>
    <small>${factsPhrase([
      texts.endedOn({ day: day(one.endedAt ?? one.invitedAt) }),
      ...(one.endedBy === null ? [] : [enders[one.endedBy]]),
    ])}</small>
    <a href="${delegateActsUrl(did, { delegation: one.id })}"><small>${texts.theyDid}</small></a>
  </div>
</li>`

const inviteForm = (holder: Holder, fault: Fault | null, typed: URLSearchParams | null): Html => html`
  <details${typed !== null && html` open`}>
    <summary>${texts.inviteSomeone}</summary>
    ${accountForm(
      holder,
      'sharing/invite',
      html`
    ${field({ name: 'delegate', label: texts.handle, value: typed?.get('delegate') ?? '', required: true, hint: texts.handleHint, fault })}
    <fieldset class="stack">
      <legend>${texts.theyMay}</legend>
      <p class="quiet">${texts.withoutTick}</p>
      ${presetBoxes(typed)}
      <label class="check"><input type="checkbox" name="privileged" value="yes"${typed?.has('privileged') && html` checked`}><span>${texts.messages}</span></label>
    </fieldset>
    ${field({ name: 'scope', label: texts.scope, value: typed?.get('scope') ?? '', maxLength: 4096, hint: texts.scopeHint, fault })}
    ${field({ name: 'ends', label: texts.lastDay, type: 'date', value: typed?.get('ends') ?? '', hint: texts.lastDayHint, fault })}
    <div><button>${texts.invite}</button></div>`,
    )}
  </details>`

// For whom the account acts

function sharedPart(holder: Holder, shared: readonly ListedDelegation[]): Html {
  return html`
<section class="card" id="shared">
  <div class="tight"><h2>${texts.shared}</h2><p class="quiet">${texts.sharedLead}</p></div>
  ${shared.length === 0 ? html`<p class="note">${texts.noShared}</p>` : html`<ul class="list">${shared.map((one) => sharedRow(holder, one))}</ul>`}
</section>`
}

function sharedRow(holder: Holder, one: ListedDelegation): Html {
  const account = otherName(one, one.did)
  const button = (path: string, deed: Phrase, kind: string) =>
    accountForm(
      holder,
      path,
      html`${hidden({ id: one.id })}<button class="small ${kind}" aria-label="${texts.deedAbout({ deed, account })}">${deed}</button>`,
    )
  const isInvited = one.status === 'invited'
  return html`
<li>
  <div class="body">
    <strong>${account}</strong>
    ${isInvited && html`<small>${texts.asksYou}</small>`}
    ${timesOf(one)}
    ${foldedScopes(texts.youMay, one.scope)}
  </div>
  ${isInvited && button('sharing/accept', texts.accept, 'primary')}
  ${isInvited ? button('sharing/leave', texts.decline, '') : button('sharing/leave', texts.leave, 'danger')}
</li>`
}

// The forms

type Work = (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<unknown>

interface Deed {
  /** Names the notice of success in the address. */
  done: string
  notice: Phrase
  work: Work
  /** Whether the page keeps what was typed if the form is refused. */
  isTyped?: true
  /** Declares the form; `holderForm` if omitted. */
  declare?: typeof holderForm
}

/** The forms, by the last segment of their address. */
const deeds: Readonly<Record<string, Deed>> = {
  invite: {
    done: 'invited',
    notice: texts.doneInvited,
    isTyped: true,
    declare: provenForm,
    async work(call, { account: { did } }, form) {
      await charge(call, { name: 'inviteDelegate', key: did })
      return inviteDelegate(call, did, form.get('delegate') ?? '', wantedTerms(form))
    },
  },
  end: {
    done: 'ended',
    notice: texts.doneEnded,
    work: (call, { account: { did } }, form) =>
      endDelegation(call, form.get('id') ?? '', 'holder', (one) => one.did === did),
  },
  accept: {
    done: 'accepted',
    notice: texts.doneAccepted,
    work: (call, { account: { did } }, form) => acceptDelegation(call, did, form.get('id') ?? ''),
  },
  leave: {
    done: 'left',
    notice: texts.doneLeft,
    work: (call, { account: { did } }, form) =>
      endDelegation(call, form.get('id') ?? '', 'delegate', (one) => one.delegateDid === did),
  },
}

const notices = new Map(Object.values(deeds).map(({ done, notice }) => [done, notice]))

/** Declares a form, and its address. */
const formRoutes = ([path, { done, work, isTyped, declare = holderForm }]: [string, Deed]): Endpoint[] => [
  declare(`${PATH}/${path}`, async (call, holder, form) => {
    const fault = await faultOf(() => work(call, holder, form))
    if (fault) return sharingPage(call, holder, { fault, typed: isTyped ? form : null })
    return seeOther(sharingUrl(holder.account.did, { done }))
  }),
  formAddress(`${PATH}/${path}`, PATH),
]

export const sharingRoutes: Endpoint[] = [
  holderPage(PATH, (call, holder) =>
    sharingPage(call, holder, { notice: notices.get(call.url.searchParams.get('done') ?? '') ?? null }),
  ),
  ...Object.entries(deeds).flatMap(formRoutes),
]
