/** The page for moving away: what the new server needs, and what is left to do here afterwards. */
import { route, type Endpoint, type Exchange } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { chargeMail, requestCode } from '../../identity/mails/mails.ts'
import { leaveAccount, leavingOf, type Leaving } from '../../identity/migration/migration.ts'
import { accountForm, accountName, accountUrl } from './account-view.ts'
import { identityUrl } from './identity-page.ts'
import {
  day,
  errorNote,
  faultOf,
  goodNote,
  hidden,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderForm, holderOf, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/move-away'
/** How long people usually keep the account that they leave behind. */
const KEPT_DAYS = 30

export const moveAwayUrl = (did: string): string => `${PATH}?${new URLSearchParams({ account: did })}`

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const wanted = call.url.searchParams.get('account')
  const holder = await holderOf(call, wanted)
  return holder ? moveAwayPage(call, holder, null, null) : seeOther(await signInUrl(call, wanted))
}

const notices: Partial<Record<Act, string>> = {
  code: 'We have mailed you the code. Enter it at the new server.',
}

async function moveAwayPage(
  { ctx }: PageCall,
  holder: Holder,
  act: Act | null,
  fault: Fault | null,
): Promise<Response> {
  const leaving = await leavingOf(ctx, holder.account.did)
  const here = new URL(ctx.config.publicUrl).host
  return page(ctx.config, {
    title: 'Move away',
    wide: true,
    status: fault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Move ${accountName(holder.account)} away</h1>
    <p class="quiet">To any other server of the network. Your identity, followers and posts stay yours.</p>
  </div>
  ${errorNote(fault) ?? goodNote((act && notices[act]) ?? null)}
  ${stateNote(leaving, here)}
  ${leaving.isHere !== false && preparation(holder, leaving)}
  ${leaving.isHere === false && afterwards(holder, leaving)}
  <p class="links"><a href="${accountUrl(leaving.did)}">Back to your account</a></p>
</section>`,
  })
}

function stateNote({ isHere, host, isActive, deleteAfter }: Leaving, here: string): Html {
  if (isHere === null)
    return html`<p class="note warn" role="status">Your identity cannot be read at the moment. Please try again later.</p>`
  if (isHere) return html`<p class="note">Your identity names ${here}. Nothing has changed yet.</p>`
  const place = host ?? 'no server'
  if (isActive)
    return html`<p class="note good">Your identity names ${place} now. The account here is still active: deactivate it.</p>`
  return html`<p class="note good">Your identity names ${place} now, and the account here is deactivated${deleteAfter !== null && html`. It will be deleted after ${day(deleteAfter)}`}.</p>`
}

const form = (holder: Holder, act: Act, content: Html): Html =>
  accountForm(holder, 'move-away', html`${hidden({ act })}${content}`)

function preparation(holder: Holder, { did, method, hasOwnKey }: Leaving): Html {
  return html`
  <section class="stack">
    <h2>1. Make a backup</h2>
    <p>One file with your posts, pictures and preferences. If anything breaks in the middle, you can continue from it.</p>
    ${accountForm(holder, 'archive', html`<div><button>Download your data</button></div>`)}
  </section>
  <section class="stack">
    <h2>2. Have a key of your own</h2>
    ${
      hasOwnKey === true
        ? html`<p>Your identity names a key outside this server. With it, you can move even if a server does not cooperate.</p>`
        : html`<p>With a recovery key, you can move even if a server does not cooperate. Let the new server add one, if it offers to.</p>`
    }
    <p class="links"><a href="${identityUrl(did)}">Who controls your identity</a></p>
  </section>
  <section class="stack">
    <h2>3. Begin at the new server</h2>
    <p>Open its page for moving an account, and sign in there with your handle and the main password of this account. It fetches everything from here.</p>
  </section>
  ${
    method === 'plc'
      ? html`
  <section class="stack">
    <h2>4. Enter the code</h2>
    <p>The new server has us mail you a code, with which your identity names the new server. If it does not come, or if you move with another program, ask for it here. Give it only to the server that you move to.</p>
    ${form(holder, 'code', html`<div><button>Mail me the code</button></div>`)}
  </section>`
      : html`
  <section class="stack">
    <h2>4. Change your document</h2>
    <p>The new server tells you which key and address to publish in the document of your domain.</p>
  </section>`
  }`
}

function afterwards(holder: Holder, { isActive, deleteAfter }: Leaving): Html {
  return html`
  <section class="stack">
    <h2>What is left here</h2>
    <p>Check first that your posts and pictures are at the new server. As long as the account is not deleted, they can be fetched from here again.</p>
    ${(isActive || deleteAfter !== null) && form(holder, 'keep', html`<div><button>${isActive ? 'Deactivate it, and keep it' : 'Keep it after all'}</button></div>`)}
    ${deleteAfter === null && form(holder, 'delete', html`<div><button class="danger">${isActive && 'Deactivate it, and '}${isActive ? 'delete' : 'Delete'} it after ${KEPT_DAYS} days</button></div>`)}
  </section>`
}

type Act = keyof typeof acts

const acts = {
  async code(call, did) {
    chargeMail(call, did, 'plc_operation')
    await requestCode(call, did, 'plc_operation')
  },
  keep: (call, did) => leaveAccount(call, did, null),
  delete: (call, did) => leaveAccount(call, did, KEPT_DAYS),
} as const satisfies Record<string, (call: Exchange, did: Did) => Promise<void>>

export const moveAwayRoutes: Endpoint[] = [
  route('GET', PATH, { handler: show }),
  holderForm(PATH, async (call, holder, given) => {
    const name = given.get('act') ?? ''
    const act = Object.hasOwn(acts, name) ? (name as Act) : null
    const { did } = holder.account
    if (act === null) return seeOther(moveAwayUrl(did))
    const fault = await faultOf(async () => {
      charge(call, { name: 'answerMove', key: did })
      await acts[act](call, did)
    })
    return fault === null && act !== 'code' ? seeOther(moveAwayUrl(did)) : moveAwayPage(call, holder, act, fault)
  }),
]
