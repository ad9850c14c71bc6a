/** Accounts: the list, the search, and everything about one of them. */
import { html, plainName, type Html, type Wording } from '../../../http/html.ts'
import { listPhrase, sizePhrase } from '../../../http/texts.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole } from '../operators/operators.ts'
import { ask, type Desk } from './console-session.ts'
import {
  accountStates,
  actForm,
  actorName,
  bodyOf,
  factList,
  FORM_ROWS,
  framed,
  inEnglish,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  pieceOf,
  placeOf,
  refusalNote,
  refusedPage,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { peopleTexts as texts } from './people-texts.ts'
import type { ActForm } from './console-layout.ts'

const ROWS = 25
const MAX_SEARCH_CHARS = 253
/** Most characters of an app's name with the URL of its metadata. */
const MAX_NAME_CHARS = 600

interface Listed {
  accounts: {
    did: string
    handle: string | null
    createdAt: string
    status: string
    totalBytes: number
    flags: { val: string }[]
  }[]
  flaggedTotal: number
  cursor?: string
}

export const accountUrl = (did: string): string => `/admin/account?${new URLSearchParams({ did }).toString()}`

export const accountLink = ({ did, handle }: { did: string; handle: string | null }): Html =>
  html`<a href="${accountUrl(did)}">${handle ?? did}</a>`

export async function accountsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const text = (searchParams.get('q') ?? '').trim().replace(/^@/, '').slice(0, MAX_SEARCH_CHARS)
  const status = searchParams.get('status') ?? ''
  const query = new URLSearchParams({ limit: String(ROWS), q: text, status, cursor: searchParams.get('cursor') ?? '' })
  const answer = await ask(desk, `/v1/admin/accounts?${query}`)
  const { accounts, flaggedTotal, cursor } = bodyOf<Listed>(answer, { accounts: [], flaggedTotal: 0 })
  return framed(desk, {
    title: consoleTexts.accounts,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <form method="get" action="/admin/accounts" class="stack">
    ${field({ name: 'q', label: texts.searchFor, value: text, maxLength: MAX_SEARCH_CHARS })}
    <div class="field">
      <label for="status">${texts.status}</label>
      <select id="status" name="status">${['', 'active', 'deactivated', 'takendown'].map((one) => html`<option value="${one}"${one === status && html` selected`}>${one === '' ? texts.any : wordFor(accountStates, one)}</option>`)}</select>
    </div>
    <div><button>${consoleTexts.search}</button></div>
  </form>
  <p class="quiet">${texts.flaggedFirst({ count: flaggedTotal })}</p>
  ${listOf(
    accounts.map(({ did, handle, createdAt, status: state, totalBytes, flags }) =>
      noteRow(accountLink({ did, handle }), [
        html`<code>${did}</code>`,
        texts.listed({
          state: wordFor(accountStates, state),
          size: sizePhrase(totalBytes),
          time: minuteOf(createdAt),
        }),
        flags.length > 0 && texts.flaggedAs({ labels: flags.map(({ val }) => val).join(', ') }),
      ]),
    ),
    texts.noMatch,
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}

interface Found {
  did: string
  handle: string | null
  email: string | null
  emailConfirmedAt: string | null
  createdAt: string
  status: string
  takedownRef: string | null
  hasPassword: boolean
  furtherHandles: string[]
  escrow: string
  invitesDisabled: boolean
  flags: { val: string; labelerDid: string; cts: string }[]
  madeBy: string | null
  children: { did: string; handle: string | null; status: string }[]
}
interface Usage {
  recordsCount: number
  blobsCount: number
  storageBytes: number
  lastActive: string | null
}
interface Access {
  access: {
    id: string
    kind: string
    name: string | null
    openedAt: string | null
    usedAt: string | null
    expiresAt: string | null
    openedWith: string | null
    openedFrom: string | null
  }[]
}
interface Quota {
  quota: { records: number; blobBytes: number }
}
const noQuota: Quota = { quota: { records: 0, blobBytes: 0 } }
interface Act {
  action: string
  actor: string
  reason?: string
  createdAt: string
}

export async function accountPage(desk: Desk): Promise<Response> {
  const did = desk.call.url.searchParams.get('did') ?? ''
  const found = await ask(desk, '/v1/admin/accounts/lookup', { account: did })
  if (!found.ok) return refusedPage(desk, texts.account, found)
  const account = found.body as Found
  const at = encodeURIComponent(account.did)
  const [usage, quota, access, events] = [
    await ask(desk, `/v1/accounts/${at}/usage`),
    await ask(desk, `/v1/admin/accounts/${at}/quota`),
    await ask(desk, `/v1/admin/accounts/${at}/access`),
    await ask(desk, `/v1/admin/audit?limit=10&subject=${at}`),
  ]
  return framed(desk, {
    title: account.handle ?? account.did,
    body: html`
${factsPart(desk, account, bodyOf(usage, noUsage), bodyOf(quota, noQuota).quota)}
${access.ok && accessPart(desk, account.did, access.body as Access)}
${actsPart(desk, account)}
${historyPart(bodyOf<{ events: Act[] }>(events, { events: [] }).events)}`,
  })
}

function factsPart(desk: Desk, account: Found, usage: Usage, limits: Quota['quota']): Html {
  const { recordsCount, blobsCount, storageBytes, lastActive } = usage
  return html`
<section class="card">
  ${factList([
    [texts.did, html`<code>${account.did}</code>`],
    [texts.handle, account.handle ?? texts.none],
    [texts.furtherHandles, account.furtherHandles.length === 0 ? null : account.furtherHandles.join(', ')],
    [texts.email, addressOf(account)],
    [texts.status, statusOf(account)],
    [texts.since, minuteOf(account.createdAt)],
    [texts.lastWrite, lastActive === null ? texts.none : minuteOf(lastActive)],
    [texts.records, limits.records === 0 ? recordsCount : texts.ofQuota({ used: recordsCount, quota: limits.records })],
    [
      texts.blobs,
      limits.blobBytes === 0
        ? texts.blobsUsed({ number: blobsCount, size: sizePhrase(storageBytes) })
        : texts.blobsOfQuota({
            number: blobsCount,
            size: sizePhrase(storageBytes),
            quota: sizePhrase(limits.blobBytes),
          }),
    ],
    [texts.recoveryShare, wordFor(escrowStates, account.escrow)],
    [texts.madeBy, account.madeBy && accountLink({ did: account.madeBy, handle: null })],
    [
      texts.children,
      account.children.length === 0
        ? null
        : html`${account.children.map((child, i) => html`${i > 0 && ', '}${accountLink(child)} (${wordFor(accountStates, child.status)})`)}`,
    ],
    [
      texts.flags,
      account.flags.length === 0
        ? null
        : listPhrase(account.flags.map(({ val, labelerDid }) => texts.flagBy({ label: val, labeler: labelerDid }))),
    ],
  ])}
  ${mayRole(desk.who.role, 'moderate') && html`<p class="links"><a href="/admin/data?${new URLSearchParams({ did: account.did }).toString()}">${texts.recordsAndBlobs}</a></p>`}
</section>`
}

const historyPart = (history: readonly Act[]): Html => html`
<section class="card">
  <h2>${texts.history}</h2>
  ${listOf(
    history.map(({ action, actor, reason, createdAt }) =>
      noteRow(inEnglish(action.replaceAll('_', ' ')), [
        reason !== undefined && consoleTexts.because({ reason }),
        consoleTexts.by({ actor: actorName(actor), time: minuteOf(createdAt) }),
      ]),
    ),
    consoleTexts.nothingDone,
  )}
</section>`

function addressOf({ email, emailConfirmedAt }: Found): Wording {
  if (email === null) return texts.none
  return emailConfirmedAt === null ? texts.notConfirmed({ email }) : email
}

function statusOf({ status, takedownRef }: Found): Wording {
  const state = wordFor(accountStates, status)
  return takedownRef === null ? state : texts.statusRef({ state, reference: takedownRef })
}

/** Where the recovery share of an account is. */
const escrowStates = {
  none: texts.none,
  held: texts.shareHeld,
  pending: texts.sharePending,
  collectable: texts.shareCollectable,
  collected: texts.shareCollected,
} as const

const accessKinds = {
  session: texts.session,
  app: texts.app,
  wallet: texts.wallet,
  browser: texts.browser,
  agent: texts.agent,
  'app-password': texts['app-password'],
} as const

function accessPart(desk: Desk, did: string, { access }: Access): Html {
  const { shown, more } = pieceOf(desk, access, FORM_ROWS, 'access')
  return html`
<section class="card">
  <h2>${texts.access}</h2>
  ${listOf(
    shown.map(({ id, kind, name, openedAt, usedAt, openedWith, openedFrom }, i) =>
      noteRow(
        name === null
          ? wordFor(accessKinds, kind)
          : texts.kindNamed({ kind: wordFor(accessKinds, kind), name: plainName(name, MAX_NAME_CHARS) }),
        [openedWith !== null && placeOf(openedWith, openedFrom), usesOf(openedAt, usedAt)],
        mayRole(desk.who.role, 'endAccess')
          ? actForm(desk, {
              id: `access-${i}`,
              act: 'end-one-access',
              back: accountUrl(did),
              button: consoleTexts.end,
              fields: { did, id },
            })
          : null,
      ),
    ),
    texts.noAccess,
  )}
  ${more}
</section>`
}

function usesOf(openedAt: string | null, usedAt: string | null): Wording | null {
  if (openedAt === null) return usedAt === null ? null : texts.used({ time: minuteOf(usedAt) })
  if (usedAt === null) return consoleTexts.since({ time: minuteOf(openedAt) })
  return texts.sinceUsed({ time: minuteOf(openedAt), used: minuteOf(usedAt) })
}

const noUsage: Usage = { recordsCount: 0, blobsCount: 0, storageBytes: 0, lastActive: null }

/** The acts that the role permits. The endpoints decide again. */
function actsPart(desk: Desk, { did, status, takedownRef, hasPassword, email, handle, invitesDisabled }: Found): Html {
  const { role } = desk.who
  const form = (act: string, button: Wording, more: Partial<ActForm> = {}): Html =>
    actForm(desk, { id: act, act, back: accountUrl(did), button, ...more, fields: { did, ...more.fields } })
  const subject = html`${field({ id: 'subject', name: 'subject', label: texts.subject, required: true, maxLength: 1000 })}`
  return html`
<section class="card">
  <h2>${texts.act}</h2>
  ${
    mayRole(role, 'moderate') &&
    html`
    ${takedownRef === null ? form('takedown', texts.takeDown, { isDangerous: true }) : form('restore', texts.lift)}
    ${form('takedown', texts.takeDownPart, { id: 'takedown-subject', inputs: subject, isDangerous: true })}
    ${form('restore', texts.restorePart, { id: 'restore-subject', inputs: html`${field({ id: 'restored', name: 'subject', label: texts.subject, required: true, maxLength: 1000 })}` })}
    ${invitesDisabled ? form('enable-invites', texts.allowInvites) : form('disable-invites', texts.stopInvites)}`
  }
  ${mayRole(role, 'endAccess') && form('end-access', texts.endAll, { isDangerous: true })}
  ${mayRole(role, 'mail') && hasPassword && email !== null && form('reset-mail', texts.mailReset)}
  ${mayRole(role, 'mail') && email !== null && status !== 'deleted' && form('mail', texts.write, { inputs: html`${field({ name: 'about', label: texts.about, maxLength: 200 })}<div class="field"><label for="content">${texts.text}</label><textarea id="content" name="content" rows="6" maxlength="20000" required></textarea></div>` })}
  ${mayRole(role, 'operate') && form('quota', texts.setQuota, { inputs: html`${field({ name: 'records', label: texts.records, hint: texts.quotaHint, maxLength: 16 })}${field({ name: 'blobBytes', label: texts.blobBytes, maxLength: 16 })}` })}
  ${
    mayRole(role, 'repairAccounts') &&
    html`
    ${form('address', texts.changeAddress, { inputs: field({ name: 'email', label: texts.newAddress, type: 'email', required: true }) })}
    ${form('handle', texts.changeHandle, { inputs: field({ id: 'new-handle', name: 'handle', label: texts.newHandle, value: handle ?? '', required: true, maxLength: 253 }) })}
    ${hasPassword && form('reset-code', texts.showReset, { isDangerous: true })}`
  }
  ${mayRole(role, 'deleteAccounts') && form('delete', texts.delete, { isDangerous: true })}
</section>`
}
