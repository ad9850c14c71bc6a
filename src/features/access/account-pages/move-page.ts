/** The page of an account that moves here: the progress of the move, and what its holder has to do. */
import type { Endpoint, Exchange } from '../../../http/endpoint.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
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
import { accountForm, accountUrl, uploadForm } from './account-view.ts'
import { formAddress } from './form-page.ts'
import { chosenKeys, hasChoice, keyChoice } from './key-choice.ts'
import { moveTexts as texts } from './move-texts.ts'
import { holderSignature, signatureFields } from './own-signature.ts'
import {
  accountName,
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
import { holderForm, holderPage, holderUpload, holderUrl, type Holder } from '../pages/pages.ts'

const PATH = '/account/move'
const ARCHIVE_ACTION = 'move/archive'
/** How often a browser reloads the page while the server is at work. */
const REFRESH_SECS = 5

export const moveUrl = (did: string): string => holderUrl(PATH, did)

async function movePage(call: PageCall, holder: Holder, act: Act | null, fault: Fault | null): Promise<Response> {
  const { account } = holder
  const { ctx } = call
  const move = await moveOf(ctx, account.did)
  if (move === null) return seeOther(accountUrl(account.did))
  const isWorking = move.needs === null && move.stage !== 'done'
  const notice = act === 'mail' && fault === null ? texts.mailed : null
  const named = { account: accountName(account) }
  return page(call, {
    title: texts.title,
    wide: true,
    status: fault?.status,
    headers: isWorking && fault === null ? { Refresh: String(REFRESH_SECS) } : {},
    body: html`
<section class="card">
  <div class="tight">
    <h1 class="name">${move.stage === 'done' ? texts.welcome(named) : texts.heading(named)}</h1>
    <p class="quiet">${aboutMove(move)}</p>
  </div>
  ${errorNote(fault) ?? goodNote(notice)}
  ${move.fault !== null && fault === null && html`<p class="note warn" role="status" lang="en">${move.fault}</p>`}
  <ol class="list" aria-label="${texts.steps}">${progressOf(move).map((step) => stepRow(step, move))}</ol>
  ${move.needs !== null && turns[move.needs](holder, move, fault, ctx.config.publicUrl)}
  ${isWorking && html`<p class="links"><a href="${moveUrl(account.did)}">${texts.checkAgain}</a></p>`}
  ${move.stage === 'done' && html`<p class="links"><a href="${accountUrl(account.did)}">${texts.yourAccount}</a></p>`}
</section>
${otherWays(holder, move)}`,
  })
}

function aboutMove({ stage, host }: MoveView): Wording {
  if (stage === 'done') return texts.isHere
  return host === null ? texts.fromArchive : texts.from({ host })
}

function stepRow({ name, state }: ReturnType<typeof progressOf>[number], { blobs, needs }: MoveView): Html {
  const detail = name === 'blobs' && blobs.expected > 0 && (blobs.lost > 0 ? texts.picturesLost : texts.pictures)(blobs)
  const said = state === 'now' && needs !== null ? texts.yourTurn : texts[state]
  return html`
<li${state === 'now' && html` aria-current="step"`}>
  <div class="body"><strong>${texts[name]}</strong>${detail && html`<small>${detail}</small>`}</div>
  <span class="quiet">${said}</span>
</li>`
}

const form = (holder: Holder, act: Act, content: Html): Html =>
  accountForm(holder, 'move', html`${hidden({ act })}${content}`)

/** What the holder has to do now. `server` is the address of this server. */
type Turn = (holder: Holder, move: MoveView, fault: Fault | null, server: string) => Html

const turns: Readonly<Record<NonNullable<MoveView['needs']>, Turn>> = {
  signature: (holder, move, fault) => html`
  <section class="stack">
    <h2>${texts.changeIdentity}</h2>
    ${move.keys !== null && keysForm(holder, move.keys)}
    ${move.mailsCode && move.agreement !== null && codeForms(holder, move, move.agreement, fault)}
    ${move.operation !== null && operationForm(holder, move, fault)}
  </section>`,
  document: (holder, { document }) => html`
  <section class="stack">
    <h2>${texts.changeIdentity}</h2>
    <p>${texts.publish}</p>
    <dl class="facts">
      <div><dt>${texts.signingKey}</dt><dd class="copy">${document?.signingKey.slice('did:key:'.length)}</dd></div>
      <div><dt>${texts.endpoint}</dt><dd class="copy">${document?.serviceEndpoint}</dd></div>
    </dl>
    ${form(holder, 'retry', html`<div><button class="primary">${texts.published}</button></div>`)}
  </section>`,
  'sign-in': (holder, { host }, fault) => html`
  <section class="stack">
    <h2>${texts.signInAgain({ host: host ?? '' })}</h2>
    <p>${texts.sessionEnded}</p>
    ${form(
      holder,
      'sign-in',
      html`
    ${passwordField({ label: texts.oldPassword, required: true, fault })}
    ${field({ name: 'auth_factor', label: texts.oldFactor, autocomplete: 'one-time-code', fault })}
    <div><button class="primary">${texts.signInThere}</button></div>`,
    )}
  </section>`,
  decision: (holder, { stage }, fault) => html`
  ${form(holder, 'retry', html`<div><button class="primary">${texts.tryAgain}</button></div>`)}
  ${stage === 'repository' && html`<details><summary>${texts.uploadInstead}</summary>${archiveForm(holder, fault)}</details>`}`,
  archive: (holder, { did }, fault, server) => html`
  <section class="stack">
    <h2>${texts.archive}</h2>
    <p>${texts.archiveAbout}</p>
    ${archiveForm(holder, fault)}
    <p class="quiet">${texts.byCommand}</p>
    <p class="copy">${uploadCommand(did, server)}</p>
  </section>`,
}

const uploadCommand = (did: string, server: string): string =>
  `holdfast migrate continue ${did} --server ${server} --archive FILE`

const archiveForm = (holder: Holder, fault: Fault | null): Html =>
  uploadForm(
    holder,
    ARCHIVE_ACTION,
    html`
  ${fileField({
    label: texts.backup,
    accept: '.car,.zip,application/vnd.ipld.car,application/zip',
    hint: texts.backupHint,
    fault,
  })}
  <div><button class="primary">${texts.upload}</button></div>`,
  )

/** Shows which keys stay and which are removed, before anything is signed. */
const keysForm = (holder: Holder, keys: KeyChanges): Html => html`
    <p>${texts.checkKeys}</p>
    ${form(holder, 'keys', html`${keyChoice(keys)}${hasChoice(keys) && html`<div><button class="small">${texts.saveKeys}</button></div>`}`)}`

const operationForm = (holder: Holder, move: MoveView, fault: Fault | null): Html => html`
    <details${(!move.mailsCode || ['secret_key', 'operation'].includes(fault?.field ?? '')) && html` open`}>
      <summary>${texts.signMyself}</summary>
      <div class="stack">
        <p class="quiet">${texts.signMyselfAbout}</p>
        ${form(holder, 'operation', html`${signatureFields(move, fault)}<div><button>${texts.changeWithKey}</button></div>`)}
      </div>
    </details>`

const codeForms = (holder: Holder, { host }: MoveView, agreement: string, fault: Fault | null): Html => html`
    <p>${texts.codeMailed({ host: host ?? '' })}</p>
    ${form(holder, 'code', html`${hidden({ agreement })}${codeField({ fault, hint: texts.codeHint })}<div><button class="primary">${texts.changeMine}</button></div>`)}
    ${form(holder, 'mail', html`<div><button class="small">${texts.mailAnother}</button></div>`)}`

function otherWays(holder: Holder, move: MoveView): Html | null {
  const isBefore = ['archive', 'repository', 'blobs', 'preferences', 'identity'].includes(move.stage)
  if (!isBefore) return null
  return html`
<section class="card">
  <h2>${texts.otherWays}</h2>
  ${
    move.blobs.lost > 0 &&
    move.needs === 'signature' &&
    form(holder, 'retry', html`<div><button class="small">${texts.fetchPictures}</button></div>`)
  }
  <details>
    <summary>${texts.oldIsGone}</summary>
    ${form(holder, 'without', html`<p class="quiet">${texts.withoutAbout}</p><div><button class="small">${texts.without}</button></div>`)}
  </details>
  <details>
    <summary>${texts.cancel}</summary>
    ${form(holder, 'cancel', html`<p class="quiet">${texts.cancelAbout}</p><div><button class="small danger">${texts.cancel}</button></div>`)}
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
  holderPage(PATH, (call, holder) => movePage(call, holder, null, null)),
  holderForm(PATH, async (call, holder, given) => {
    const name = given.get('act') ?? ''
    const act = Object.hasOwn(acts, name) ? (name as Act) : null
    const { did } = holder.account
    if (act === null) return seeOther(moveUrl(did))
    const fault = await faultOf(async () => {
      await charge(call, { name: 'answerMove', key: did })
      await acts[act](call, did, given)
    })
    if (fault === null && act === 'cancel') return seeOther('/account/move-here')
    return fault === null && act !== 'mail' ? seeOther(moveUrl(did)) : movePage(call, holder, act, fault)
  }),
  holderUpload(`/account/${ARCHIVE_ACTION}`, async (call, holder, _, file) => {
    const { did } = holder.account
    if (file === null) return movePage(call, holder, null, faultAt('file', texts.chooseFile))
    const fault = await faultOf(async () => {
      await charge(call, { name: 'answerMove', key: did })
      await giveArchive(call, did, { upload: file, isZip: await file.beginsWith(ZIP_MAGIC) })
    })
    return fault === null ? seeOther(moveUrl(did)) : movePage(call, holder, null, fault)
  }),
  formAddress(`/account/${ARCHIVE_ACTION}`, PATH),
]
