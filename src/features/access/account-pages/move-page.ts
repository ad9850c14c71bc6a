/** The page of an account that moves here: how far the move is, and what its holder has to do. */
import { route, type Endpoint, type Exchange } from '../../../http/endpoint.ts'
import { html, type Html } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { page } from '../../../http/page.ts'
import { ZIP_MAGIC } from '../../../base/zip-magic.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  cancelMove,
  chooseKeys,
  giveArchive,
  giveCode,
  giveOperation,
  goWithoutOldServer,
  mailAnotherCode,
  moveOf,
  progressOf,
  signInAgain,
  tryAgain,
  type KeyChanges,
  type MoveView,
} from '../../identity/migration/migration.ts'
import { accountForm, accountName, accountUrl, uploadForm } from './account-view.ts'
import { chosenKeys, hasChoice, keyChoice } from './key-choice.ts'
import { holderSignature, signatureFields } from './own-signature.ts'
import {
  codeField,
  errorNote,
  faultAt,
  faultOf,
  field,
  fileField,
  goodNote,
  hidden,
  passwordField,
  seeOther,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'
import { holderForm, holderOf, holderUpload, requireNavigation, signInUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/move'
const ARCHIVE_ACTION = 'move/archive'
/** How often a browser loads the page again while the server is at work. */
const REFRESH_SECS = 5

export const moveUrl = (did: string): string => `${PATH}?${new URLSearchParams({ account: did })}`

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const wanted = call.url.searchParams.get('account')
  const holder = await holderOf(call, wanted)
  return holder ? movePage(call, holder, null, null) : seeOther(await signInUrl(call, wanted))
}

async function movePage({ ctx }: PageCall, holder: Holder, act: Act | null, fault: Fault | null): Promise<Response> {
  const { account } = holder
  const move = await moveOf(ctx, account.did)
  if (move === null) return seeOther(accountUrl(account.did))
  const isWorking = move.needs === null && move.stage !== 'done'
  const notice = act === 'mail' && fault === null ? 'The old server has mailed another code.' : null
  return page(ctx.config, {
    title: 'Your move',
    wide: true,
    status: fault?.status,
    headers: isWorking && fault === null ? { Refresh: String(REFRESH_SECS) } : {},
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${move.stage === 'done' ? 'Welcome' : 'Your move'}, ${accountName(account)}</h1>
    <p class="quiet">${move.stage === 'done' ? 'Your account is here. Sign in to your apps with this server and your new password.' : `From ${move.host ?? 'your archive'}. You may close this page: the move continues, and you find it here again.`}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  ${move.fault !== null && fault === null && html`<p class="note warn" role="status">${move.fault}</p>`}
  <ol class="list" aria-label="Steps of the move">${progressOf(move).map((step) => stepRow(step, move))}</ol>
  ${move.needs !== null && turns[move.needs](holder, move, fault, ctx.config.publicUrl)}
  ${isWorking && html`<p class="links"><a href="${moveUrl(account.did)}">Check again</a></p>`}
  ${move.stage === 'done' && html`<p class="links"><a href="${accountUrl(account.did)}">Your account</a></p>`}
</section>
${otherWays(holder, move)}`,
  })
}

const states = { over: 'Done', now: 'In progress', ahead: 'To come' } as const

function stepRow({ words, state }: ReturnType<typeof progressOf>[number], move: MoveView): Html {
  const { expected, stored, lost } = move.blobs
  const detail =
    words === 'Pictures and videos' && expected > 0
      ? `${stored} of ${expected}${lost > 0 ? `, ${lost} could not be fetched` : ''}`
      : null
  const said = state === 'now' && move.needs !== null ? 'Your turn' : states[state]
  return html`
<li${state === 'now' && html` aria-current="step"`}>
  <div class="body"><strong>${words}</strong>${detail && html`<small>${detail}</small>`}</div>
  <span class="quiet">${said}</span>
</li>`
}

const form = (holder: Holder, act: Act, content: Html): Html =>
  accountForm(holder, 'move', html`${hidden({ act })}${content}`)

/** `server` is the address of this one. */
type Turn = (holder: Holder, move: MoveView, fault: Fault | null, server: string) => Html

const turns: Readonly<Record<NonNullable<MoveView['needs']>, Turn>> = {
  signature: (holder, move, fault) => html`
  <section class="stack">
    <h2>Change your identity</h2>
    ${move.keys !== null && keysForm(holder, move.keys)}
    ${move.mailsCode && move.agreement !== null && codeForms(holder, move, move.agreement, fault)}
    ${move.operation !== null && operationForm(holder, move, fault)}
  </section>`,
  document: (holder, { document }) => html`
  <section class="stack">
    <h2>Change your identity</h2>
    <p>Publish these two in the document of your identity, in place of those that it names now. Then check.</p>
    <dl class="facts">
      <div><dt>Signing key</dt><dd class="copy">${document?.signingKey.slice('did:key:'.length)}</dd></div>
      <div><dt>Service endpoint</dt><dd class="copy">${document?.serviceEndpoint}</dd></div>
    </dl>
    ${form(holder, 'retry', html`<div><button class="primary">I have published it: check</button></div>`)}
  </section>`,
  'sign-in': (holder, { host }, fault) => html`
  <section class="stack">
    <h2>Sign in at ${host} again</h2>
    <p>The session there has ended.</p>
    ${form(
      holder,
      'sign-in',
      html`
    ${passwordField({ label: 'Password at the old server', required: true, fault })}
    ${field({ name: 'auth_factor', label: 'Sign-in code, if the old server mails one', autocomplete: 'one-time-code', fault })}
    <div><button class="primary">Sign in there</button></div>`,
    )}
  </section>`,
  decision: (holder, { stage }, fault) => html`
  ${form(holder, 'retry', html`<div><button class="primary">Try again</button></div>`)}
  ${stage === 'repository' && html`<details><summary>Upload your backup instead</summary>${archiveForm(holder, fault)}</details>`}`,
  archive: (holder, { did }, fault, server) => html`
  <section class="stack">
    <h2>Your archive</h2>
    <p>The old server is gone, so your posts come from your backup.</p>
    ${archiveForm(holder, fault)}
    <p class="quiet">A very large file is better uploaded with this command:</p>
    <p class="copy">holdfast migrate continue ${did} --server ${server} --archive FILE</p>
  </section>`,
}

const archiveForm = (holder: Holder, fault: Fault | null): Html =>
  uploadForm(
    holder,
    ARCHIVE_ACTION,
    html`
  ${fileField({
    label: 'Your backup',
    accept: '.car,.zip,application/vnd.ipld.car,application/zip',
    hint: 'The CAR file of your repository, or the ZIP archive of a server of this kind, which also has your pictures. Keep this page open until the upload has ended.',
    fault,
  })}
  <div><button class="primary">Upload it</button></div>`,
  )

/** With all that becomes of the keys, before anything is signed. */
const keysForm = (holder: Holder, keys: KeyChanges): Html => html`
    <p>The holder of any of these keys can change your identity. Check them before you enter the code.</p>
    ${form(holder, 'keys', html`${keyChoice(keys)}${hasChoice(keys) && html`<div><button class="small">Save which keys stay</button></div>`}`)}`

const operationForm = (holder: Holder, move: MoveView, fault: Fault | null): Html => html`
    <details${(!move.mailsCode || ['secret_key', 'operation'].includes(fault?.field ?? '')) && html` open`}>
      <summary>Sign with a key of my own</summary>
      <div class="stack">
        <p class="quiet">If a key of yours is among the rotation keys of your identity, it can sign in place of the old server.</p>
        ${form(holder, 'operation', html`${signatureFields(move, fault)}<div><button>Change my identity with my key</button></div>`)}
      </div>
    </details>`

const codeForms = (holder: Holder, { host }: MoveView, agreement: string, fault: Fault | null): Html => html`
    <p>${host} has mailed a code to the address of your old account. With it, your identity names this server instead. From then on the move cannot be cancelled.</p>
    ${form(holder, 'code', html`${hidden({ agreement })}${codeField({ fault, hint: 'It may take a minute to arrive.' })}<div><button class="primary">Change my identity</button></div>`)}
    ${form(holder, 'mail', html`<div><button class="small">Mail another code</button></div>`)}`

function otherWays(holder: Holder, move: MoveView): Html | null {
  const isBefore = ['archive', 'repository', 'blobs', 'preferences', 'identity'].includes(move.stage)
  if (!isBefore) return null
  return html`
<section class="card">
  <h2>Other ways</h2>
  ${
    move.blobs.lost > 0 &&
    move.needs === 'signature' &&
    form(holder, 'retry', html`<div><button class="small">Fetch missing pictures again</button></div>`)
  }
  <details>
    <summary>The old server is gone</summary>
    ${form(holder, 'without', html`<p class="quiet">What it has not given yet is lost, unless you have a backup, and a key of your own has to change the identity.</p><div><button class="small">Continue without it</button></div>`)}
  </details>
  <details>
    <summary>Cancel the move</summary>
    ${form(holder, 'cancel', html`<p class="quiet">What has come here is deleted. Your account at the old server stays as it is.</p><div><button class="small danger">Cancel the move</button></div>`)}
  </details>
</section>`
}

type Act = keyof typeof acts

const acts = {
  code: (call, did, given) =>
    giveCode(call, did, { code: (given.get('code') ?? '').trim(), agreement: given.get('agreement') ?? '' }),
  async keys(call, did, given) {
    const keys = chosenKeys(given)
    if (keys !== undefined) await chooseKeys(call, did, keys)
  },
  async operation(call, did, given) {
    const move = async () => (await moveOf(call.ctx, did)) ?? { operation: null, agreement: null }
    await giveOperation(call, did, await holderSignature(given, move))
  },
  mail: mailAnotherCode,
  retry: tryAgain,
  'sign-in': (call, did, given) => {
    const authFactorToken = (given.get('auth_factor') ?? '').trim()
    return signInAgain(call, did, {
      password: given.get('password') ?? '',
      ...(authFactorToken !== '' && { authFactorToken }),
    })
  },
  without: goWithoutOldServer,
  cancel: cancelMove,
} as const satisfies Record<string, (call: Exchange, did: Did, given: URLSearchParams) => Promise<void>>

export const movePageRoutes: Endpoint[] = [
  route('GET', PATH, { handler: show }),
  holderForm(PATH, async (call, holder, given) => {
    const name = given.get('act') ?? ''
    const act = Object.hasOwn(acts, name) ? (name as Act) : null
    const { did } = holder.account
    if (act === null) return seeOther(moveUrl(did))
    const fault = await faultOf(async () => {
      charge(call, { name: 'answerMove', key: did })
      await acts[act](call, did, given)
    })
    if (fault === null && act === 'cancel') return seeOther('/account/move-here')
    return fault === null && act !== 'mail' ? seeOther(moveUrl(did)) : movePage(call, holder, act, fault)
  }),
  holderUpload(`/account/${ARCHIVE_ACTION}`, async (call, holder, _, file) => {
    const { did } = holder.account
    if (file === null) return movePage(call, holder, null, faultAt('file', 'Please choose the file of your backup.'))
    const fault = await faultOf(async () => {
      charge(call, { name: 'answerMove', key: did })
      await giveArchive(call, did, { upload: file, isZip: await file.beginsWith(ZIP_MAGIC) })
    })
    return fault === null ? seeOther(moveUrl(did)) : movePage(call, holder, null, fault)
  }),
  route('GET', `/account/${ARCHIVE_ACTION}`, {
    handler: async ({ url }) => seeOther(moveUrl(url.searchParams.get('account') ?? '')),
  }),
]
