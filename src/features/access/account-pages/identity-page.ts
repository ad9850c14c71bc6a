/**
 * The page that says in plain words who can move the account away: the keys of a did:plc in order of rank, or the
 * domain of a did:web. It reads the directory each time, so it shows what other servers believe.
 */
import type { Endpoint } from '../../../http/endpoint.ts'
import { html, type Html, type Phrase } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { changedElsewhere } from '../../identity/account-events/account-events.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { watchedIdentity, type Misfit, type WatchedIdentity } from '../../identity/identity-watch/identity-watch.ts'
import { controlOf, type ControllingKey, type IdentityControl } from './identity-control.ts'
import { accountUrl } from './account-view.ts'
import { escrowForms, escrowOf, escrowPart } from './escrow-part.ts'
import { identityTexts as texts } from './identity-texts.ts'
import { hostingForms, hostingOf, hostingPart } from './hosting-part.ts'
import { noOwnKey, ownKeyForms, ownKeyPart, type OwnKey } from './own-key-part.ts'
import { accountName, day, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { holderPage, holderUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/identity'

export const identityUrl = (did: Did): string => holderUrl(PATH, did)

interface Shown {
  hostingFault?: Fault | null
  ownKey?: OwnKey
}

async function identityPage(
  call: PageCall,
  holder: Holder,
  { hostingFault = null, ownKey = noOwnKey }: Shown = {},
): Promise<Response> {
  const { ctx } = call
  const { account } = holder
  const { did } = account
  const host = new URL(ctx.config.publicUrl).host
  const [found, escrow, hosting, watched] = await Promise.all([
    controlOf(ctx, did),
    escrowOf(ctx, did),
    hostingOf(ctx, did),
    watchedIdentity(ctx.db, did),
  ])
  return page(call, {
    title: texts.title,
    wide: true,
    status: (hostingFault ?? ('fault' in ownKey ? ownKey.fault : null))?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${texts.heading({ account: accountName(account) })}</h1>
    <code>${did}</code>
  </div>
  <p class="quiet">${texts.lead}</p>
  ${watched && watchedPart(watched, account, ctx.clock.now())}
  ${found.ok ? controlPart(found.control, host) : html`<p class="note warn" role="status">${texts[found.fault]}</p>`}
  <p class="links"><a href="${accountUrl(did)}">${texts.back}</a></p>
</section>
${(ownKey !== noOwnKey || (found.ok && isOursAlone(found.control))) && ownKeyPart(holder, ownKey)}
${hosting && hostingPart(holder, hosting, host, hostingFault)}
${escrow && escrowPart(holder, escrow)}`,
  })
}

const misfitTexts: Readonly<Record<Exclude<Misfit, 'ended'>, Phrase>> = {
  server: texts.misfitServer,
  'signing-key': texts.misfitKey,
  handle: texts.misfitHandle,
}

/**
 * Warns of a change by someone else while it can be undone, and of an identity that does not fit its account, if that
 * is in use.
 */
function watchedPart({ change, misfit }: WatchedIdentity, { deactivatedAt }: Account, now: Millis): Html {
  const isUndoable = change !== null && now < change.undoableUntil
  return html`
${
  isUndoable &&
  html`<section class="stack">
  <h2>${texts.changedElsewhere}</h2>
  <p class="note warn">${changedElsewhere(change)}</p>
  ${change.follows !== undefined && change.undoableBy.length > 0 && html`<p class="quiet">${texts.undoHow({ cid: change.follows })}</p>`}
</section>`
}
${misfit !== null && misfit !== 'ended' && deactivatedAt === null && html`<p class="note warn">${misfitTexts[misfit]}</p>`}`
}

function controlPart(control: IdentityControl, server: string): Html {
  switch (control.method) {
    case 'plc':
      return control.keys.length === 0 ? html`<p class="note warn">${texts.deactivated}</p>` : keysPart(control, server)
    case 'web':
      return webPart(control, server)
    case 'other':
      return html`<p class="note">${texts.otherMethod}</p>`
  }
}

/** Whether only keys of this server can change the identity. */
const isOursAlone = (control: IdentityControl): boolean =>
  control.method === 'plc' && control.keys.length > 0 && control.keys.every(({ isOurs }) => isOurs)

function keysPart({ keys, changedAt }: IdentityControl & { method: 'plc' }, server: string): Html {
  return html`
${verdict(keys)}
<section class="stack">
  <h2>${texts.keys}</h2>
  <p class="quiet">${texts.keysLead}</p>
  <ol class="list">${keys.map((key) => keyRow(key, server))}</ol>
  ${changedAt !== null && html`<p class="quiet">${texts.changed({ day: day(changedAt) })}</p>`}
</section>`
}

/** Explains the ranks: if the holder's own key ranks first, this server cannot overrule it. */
function verdict(keys: readonly ControllingKey[]): Html {
  if (keys.every(({ isOurs }) => isOurs)) return html`<p class="note warn">${texts.onlyServer}</p>`
  if (keys[0]!.isOurs) return html`<p class="note warn">${texts.serverFirst}</p>`
  return html`<p class="note good">${texts.outsideFirst}</p>`
}

const keyRow = ({ key, isOurs }: ControllingKey, server: string): Html => html`
<li>
  <div class="body">
    <strong>${isOurs ? texts.ourKey : texts.outsideKey}</strong>
    <small>${isOurs ? texts.ourKeyUse({ server }) : texts.outsideKeyUse}</small>
    <code>${key}</code>
  </div>
</li>`

function webPart({ host, hostedSince }: IdentityControl & { method: 'web' }, server: string): Html {
  return html`
<p class="note">${texts.web({ host })}</p>
${hostedSince !== null && html`<p class="note warn">${texts.webHosted({ day: day(hostedSince), server })}</p>`}`
}

export const identityPageRoutes: Endpoint[] = [
  holderPage(PATH, identityPage),
  ...escrowForms,
  ...hostingForms((call, holder, hostingFault) => identityPage(call, holder, { hostingFault })),
  ...ownKeyForms((call, holder, ownKey) => identityPage(call, holder, { ownKey })),
]
