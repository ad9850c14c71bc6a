/**
 * The page that says in plain words who can move the account away: the keys of a did:plc in order of rank, or the
 * domain of a did:web. It reads the directory each time, so it shows what other servers believe.
 */
import { route, type Endpoint } from '../../http/endpoint.ts'
import { html, type Html } from '../../http/html.ts'
import { page } from '../../http/page.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { controlOf, type ControllingKey, type IdentityControl } from '../identity/identity.ts'
import { accountName } from './account-view.ts'
import { escrowForms, escrowOf, escrowPart } from './escrow-part.ts'
import { requireNavigation } from './devices.ts'
import type { Fault } from './faults.ts'
import { holderOf, signInUrl, type Holder } from './holders.ts'
import { hostingForms, hostingOf, hostingPart } from './hosting-part.ts'
import { day, seeOther, type PageCall } from './page-parts.ts'

const PATH = '/account/identity'

export const identityUrl = (did: Did): string => `${PATH}?${new URLSearchParams({ account: did })}`

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const holder = await holderOf(call, call.url.searchParams.get('account'))
  return holder ? identityPage(call, holder, null) : seeOther(await signInUrl(call, call.url.searchParams.get('account')))
}

async function identityPage({ ctx }: PageCall, holder: Holder, hostingFault: Fault | null): Promise<Response> {
  const { account } = holder
  const { did } = account
  const host = new URL(ctx.config.publicUrl).host
  const [found, escrow, hosting] = await Promise.all([controlOf(ctx, did), escrowOf(ctx, did), hostingOf(ctx, did)])
  return page(ctx.config, {
    title: 'Your identity',
    wide: true,
    status: hostingFault?.status,
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">Identity of ${accountName(account)}</h1>
    <code>${did}</code>
  </div>
  <p class="quiet">Your identity outlives this server. Whoever controls it decides which server your account is on, and which name it has.</p>
  ${found.ok ? controlPart(found.control, host) : html`<p class="note warn" role="status">${unknown[found.fault]}</p>`}
  <p class="links"><a href="/account?${new URLSearchParams({ account: did }).toString()}">Back to your account</a></p>
</section>
${hosting && hostingPart(holder, hosting, host, hostingFault)}
${escrow && escrowPart(holder, escrow)}`,
  })
}

const unknown = {
  'not-found': 'The directory does not know this identity. Please contact the operator of this server.',
  deactivated: 'This identity has ended.',
  unreachable: 'The directory of identities is not responding at the moment. Please try again later.',
  unreadable: 'The directory of identities sent something that this server cannot read. Please try again later.',
} as const

function controlPart(control: IdentityControl, server: string): Html {
  switch (control.method) {
    case 'plc':
      return control.keys.length === 0 ? html`<p class="note warn">This identity has ended.</p>` : keysPart(control, server)
    case 'web':
      return webPart(control, server)
    case 'other':
      return html`<p class="note">This kind of identity is not managed here.</p>`
  }
}

function keysPart({ keys, changedAt }: IdentityControl & { method: 'plc' }, server: string): Html {
  return html`
${verdict(keys)}
<section class="stack">
  <h2>Keys that control it</h2>
  <p class="quiet">A key can undo what a lower one has done, within three days.</p>
  <ol class="list">${keys.map((key) => keyRow(key, server))}</ol>
  ${changedAt !== null && html`<p class="quiet">Last changed ${day(changedAt)}. If that was not you, a key of higher rank can undo it within three days.</p>`}
</section>`
}

/** What the ranks mean for the holder: a key of theirs that is first cannot be overruled by the server. */
function verdict(keys: readonly ControllingKey[]): Html {
  if (keys.every(({ isOurs }) => isOurs))
    return html`<p class="note warn">Only this server can change your identity. To leave, you depend on it. A recovery key of your own would change that.</p>`
  if (keys[0]!.isOurs)
    return html`<p class="note warn">There is a key outside this server, but this server ranks above it and could undo what that key does.</p>`
  return html`<p class="note good">The highest key is not held by this server. Whoever holds it can move this account away without this server, and this server cannot undo it.</p>`
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
<p class="note">Whoever controls the domain <strong>${host}</strong> controls this identity.</p>
${
  hostedSince !== null &&
  html`<p class="note warn">Since ${day(hostedSince)}, ${server} serves the document of this identity. Whoever is signed in to your account here can change it.</p>`
}`
}

export const identityPageRoutes: Endpoint[] = [route('GET', PATH, { handler: show }), ...escrowForms, ...hostingForms(identityPage)]
