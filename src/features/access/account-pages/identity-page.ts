/**
 * The page that says in plain words who can move the account away: the keys of a did:plc in order of rank, or the
 * domain of a did:web. It reads the directory each time, so it shows what other servers believe.
 */
import { route, type Endpoint } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { page } from '../../../http/page.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { controlOf, type ControllingKey, type IdentityControl } from './identity-control.ts'
import { accountName, accountUrl } from './account-view.ts'
import { escrowForms, escrowOf, escrowPart } from './escrow-part.ts'
import { hostingForms, hostingOf, hostingPart } from './hosting-part.ts'
import { noOwnKey, ownKeyForms, ownKeyPart, type OwnKey } from './own-key-part.ts'
import { day, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { holderOf, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/identity'

export const identityUrl = (did: Did): string => `${PATH}?${new URLSearchParams({ account: did })}`

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const holder = await holderOf(call, call.url.searchParams.get('account'))
  return holder ? identityPage(call, holder) : seeOther(await signInUrl(call, call.url.searchParams.get('account')))
}

interface Shown {
  hostingFault?: Fault | null
  ownKey?: OwnKey
}

async function identityPage(
  { ctx }: PageCall,
  holder: Holder,
  { hostingFault = null, ownKey = noOwnKey }: Shown = {},
): Promise<Response> {
  const { account } = holder
  const { did } = account
  const host = new URL(ctx.config.publicUrl).host
  const [found, escrow, hosting] = await Promise.all([controlOf(ctx, did), escrowOf(ctx, did), hostingOf(ctx, did)])
  return page(ctx.config, {
    title: 'Your identity',
    wide: true,
    status: (hostingFault ?? ('fault' in ownKey ? ownKey.fault : null))?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Identity of ${accountName(account)}</h1>
    <code>${did}</code>
  </div>
  <p class="quiet">Your identity outlives this server. Control of it decides which server hosts your account, and which handle it has.</p>
  ${found.ok ? controlPart(found.control, host) : html`<p class="note warn" role="status">${unknown[found.fault]}</p>`}
  <p class="links"><a href="${accountUrl(did)}">Back to your account</a></p>
</section>
${(ownKey !== noOwnKey || (found.ok && isOursAlone(found.control))) && ownKeyPart(holder, ownKey)}
${hosting && hostingPart(holder, hosting, host, hostingFault)}
${escrow && escrowPart(holder, escrow)}`,
  })
}

const unknown = {
  'not-found': 'The directory does not know this identity. Please contact the operator of this server.',
  deactivated: 'This identity has ended.',
  unreachable: 'The identity directory is not responding. Please try again later.',
  unreadable: 'The identity directory sent an invalid response. Please try again later.',
} as const

function controlPart(control: IdentityControl, server: string): Html {
  switch (control.method) {
    case 'plc':
      return control.keys.length === 0
        ? html`<p class="note warn">This identity has ended.</p>`
        : keysPart(control, server)
    case 'web':
      return webPart(control, server)
    case 'other':
      return html`<p class="note">This server does not manage this kind of identity.</p>`
  }
}

/** Whether no key but those of this server can change the identity. */
const isOursAlone = (control: IdentityControl): boolean =>
  control.method === 'plc' && control.keys.length > 0 && control.keys.every(({ isOurs }) => isOurs)

function keysPart({ keys, changedAt }: IdentityControl & { method: 'plc' }, server: string): Html {
  return html`
${verdict(keys)}
<section class="stack">
  <h2>Keys that control it</h2>
  <p class="quiet">A key can undo the changes of a lower one within three days.</p>
  <ol class="list">${keys.map((key) => keyRow(key, server))}</ol>
  ${changedAt !== null && html`<p class="quiet">Last changed ${day(changedAt)}. If this was not you, a higher key can undo it within three days.</p>`}
</section>`
}

/** What the ranks mean for the holder: a key of theirs that is first cannot be overruled by the server. */
function verdict(keys: readonly ControllingKey[]): Html {
  if (keys.every(({ isOurs }) => isOurs))
    return html`<p class="note warn">Only this server can change your identity, so you cannot leave without its help. A recovery key of your own would change that.</p>`
  if (keys[0]!.isOurs)
    return html`<p class="note warn">One key is outside this server, but this server's key ranks higher and could undo its changes.</p>`
  return html`<p class="note good">The highest key is outside this server. With it, the account can be moved away without this server, and this server cannot undo that.</p>`
}

const keyRow = ({ key, isOurs }: ControllingKey, server: string): Html => html`
<li>
  <div class="body">
    <strong>${isOurs ? html`A key of this server` : html`A key outside this server`}</strong>
    <small>${isOurs ? html`${server} uses it to change your handle and to help you move.` : 'Yours, if it is the key of your wallet or a recovery key that you keep.'}</small>
    <code>${key}</code>
  </div>
</li>`

function webPart({ host, hostedSince }: IdentityControl & { method: 'web' }, server: string): Html {
  return html`
<p class="note">Control of the domain <strong>${host}</strong> is control of this identity.</p>
${
  hostedSince !== null &&
  html`<p class="note warn">Since ${day(hostedSince)}, ${server} serves the document of this identity. Any session of your account here can change it.</p>`
}`
}

export const identityPageRoutes: Endpoint[] = [
  route('GET', PATH, { handler: show }),
  ...escrowForms,
  ...hostingForms((call, holder, hostingFault) => identityPage(call, holder, { hostingFault })),
  ...ownKeyForms((call, holder, ownKey) => identityPage(call, holder, { ownKey })),
]
