/** The page for moving away: what the new server needs, and what is left to do here afterwards. */
import type { Endpoint, Exchange } from '../../../http/endpoint.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { chargeMail, requestCode } from '../../identity/mails/mails.ts'
import { leaveAccount, leavingOf, type Leaving } from '../../identity/migration/migration.ts'
import { accountForm, accountUrl } from './account-view.ts'
import { identityUrl } from './identity-page.ts'
import { moveAwayTexts as texts } from './move-away-texts.ts'
import {
  accountName,
  day,
  errorNote,
  faultOf,
  goodNote,
  hidden,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, provenForm, type Holder } from '../pages/pages.ts'

const PATH = '/account/move-away'
/** Days for which an account that has moved away is kept before it is deleted. */
const KEPT_DAYS = 30

export const moveAwayUrl = (did: string): string => holderUrl(PATH, did)

const notices: Partial<Record<Act, Wording>> = { code: texts.codeMailed }

async function moveAwayPage(call: PageCall, holder: Holder, act: Act | null, fault: Fault | null): Promise<Response> {
  const leaving = await leavingOf(call.ctx, holder.account.did)
  const here = new URL(call.ctx.config.publicUrl).host
  return page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.heading({ account: accountName(holder.account) })}</h1>
    <p class="quiet">${texts.lead}</p>
  </div>
  ${errorNote(fault) ?? goodNote((act && notices[act]) ?? null)}
  ${stateNote(leaving, here)}
  ${leaving.isHere !== false && preparation(holder, leaving)}
  ${leaving.isHere === false && afterwards(holder, leaving)}
  <p class="links"><a href="${accountUrl(leaving.did)}">${texts.back}</a></p>
</section>`,
  })
}

function stateNote({ isHere, host, isActive, deleteAfter }: Leaving, here: string): Html {
  if (isHere === null) return html`<p class="note warn" role="status">${texts.unreadable}</p>`
  if (isHere) return html`<p class="note">${texts.stillHere({ here })}</p>`
  return html`<p class="note good">${goneWords(host ?? texts.noServer, isActive, deleteAfter)}</p>`
}

function goneWords(place: Wording, isActive: boolean, deleteAfter: Millis | null): Wording {
  if (isActive) return texts.goneActive({ place })
  return deleteAfter === null ? texts.gone({ place }) : texts.goneUntil({ place, day: day(deleteAfter) })
}

const form = (holder: Holder, act: Act, content: Html): Html =>
  accountForm(holder, 'move-away', html`${hidden({ act })}${content}`)

function preparation(holder: Holder, { did, method, hasOwnKey }: Leaving): Html {
  return html`
  <section class="stack">
    <h2>${texts.backup}</h2>
    <p>${texts.backupAbout}</p>
    ${accountForm(holder, 'archive', html`<div><button>${texts.download}</button></div>`)}
  </section>
  <section class="stack">
    <h2>${texts.ownKey}</h2>
    <p>${hasOwnKey === true ? texts.hasKey : texts.lacksKey}</p>
    <p class="links"><a href="${identityUrl(did)}">${texts.whoControls}</a></p>
  </section>
  <section class="stack">
    <h2>${texts.beginThere}</h2>
    <p>${texts.beginThereAbout}</p>
  </section>
  ${
    method === 'plc'
      ? html`
  <section class="stack">
    <h2>${texts.enterCode}</h2>
    <p>${texts.enterCodeAbout}</p>
    ${form(holder, 'code', html`<div><button>${texts.mailCode}</button></div>`)}
  </section>`
      : html`
  <section class="stack">
    <h2>${texts.changeDocument}</h2>
    <p>${texts.changeDocumentAbout}</p>
  </section>`
  }`
}

function afterwards(holder: Holder, { isActive, deleteAfter }: Leaving): Html {
  return html`
  <section class="stack">
    <h2>${texts.left}</h2>
    <p>${texts.leftAbout}</p>
    ${(isActive || deleteAfter !== null) && form(holder, 'keep', html`<div><button>${isActive ? texts.deactivateKeep : texts.keepAfterAll}</button></div>`)}
    ${deleteAfter === null && form(holder, 'delete', html`<div><button class="danger">${(isActive ? texts.deactivateDelete : texts.deleteAfter)({ days: KEPT_DAYS })}</button></div>`)}
  </section>`
}

type Act = keyof typeof acts

const acts = {
  async code(call, did) {
    await chargeMail(call, did, 'plc_operation')
    await requestCode(call, did, 'plc_operation')
  },
  keep: (call, did) => leaveAccount(call, did, null),
  delete: (call, did) => leaveAccount(call, did, KEPT_DAYS),
} as const satisfies Record<string, (call: Exchange, did: Did) => Promise<void>>

export const moveAwayRoutes: Endpoint[] = [
  holderPage(PATH, (call, holder) => moveAwayPage(call, holder, null, null)),
  provenForm(PATH, async (call, holder, given) => {
    const name = given.get('act') ?? ''
    const act = Object.hasOwn(acts, name) ? (name as Act) : null
    const { did } = holder.account
    if (act === null) return seeOther(moveAwayUrl(did))
    const fault = await faultOf(async () => {
      await charge(call, { name: 'answerMove', key: did })
      await acts[act](call, did)
    })
    return fault === null && act !== 'code' ? seeOther(moveAwayUrl(did)) : moveAwayPage(call, holder, act, fault)
  }),
]
