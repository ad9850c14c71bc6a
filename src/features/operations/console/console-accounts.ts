/** Accounts: the list, the search, and everything about one of them. */
import { html, type Html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { mayRole } from '../operators/operators.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  factList,
  framed,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  refusalNote,
  sizeOf,
} from './console-layout.ts'
import type { ActForm } from './console-layout.ts'

const ROWS = 25
const MAX_SEARCH_CHARS = 253

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

export async function accountsPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const text = (searchParams.get('q') ?? '').trim().replace(/^@/, '').slice(0, MAX_SEARCH_CHARS)
  const status = searchParams.get('status') ?? ''
  const query = new URLSearchParams({ limit: String(ROWS), q: text, status, cursor: searchParams.get('cursor') ?? '' })
  const answer = await ask(desk, `/v1/admin/accounts?${query}`)
  const { accounts, flaggedTotal, cursor } = answer.ok
    ? (answer.body as Listed)
    : { accounts: [], flaggedTotal: 0, cursor: undefined }
  return framed(desk, {
    title: 'Accounts',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <form method="get" action="/admin/accounts" class="stack">
    ${field({ name: 'q', label: 'Part of a handle, DID or email address', value: text, maxLength: MAX_SEARCH_CHARS })}
    <div class="field">
      <label for="status">Status</label>
      <select id="status" name="status">${['', 'active', 'deactivated', 'takendown'].map((one) => html`<option value="${one}"${one === status && html` selected`}>${one || 'any'}</option>`)}</select>
    </div>
    <div><button>Search</button></div>
  </form>
  <p class="quiet">${flaggedTotal} accounts are flagged by labelers; they come first.</p>
  ${listOf(
    accounts.map(({ did, handle, createdAt, status: state, totalBytes, flags }) =>
      noteRow(html`<a href="${accountUrl(did)}">${handle ?? did}</a>`, [
        html`<span class="mono">${did}</span>`,
        html`${state}, ${sizeOf(totalBytes)} of blobs, since ${minuteOf(createdAt)}`,
        flags.length > 0 && html`flagged: ${flags.map(({ val }) => val).join(', ')}`,
      ]),
    ),
    'No account matches.',
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

export async function accountPage(desk: Desk): Promise<Response> {
  const did = desk.call.url.searchParams.get('did') ?? ''
  const found = await ask(desk, '/v1/admin/accounts/lookup', { account: did })
  if (!found.ok)
    return framed(desk, {
      title: 'Account',
      status: found.status,
      body: html`<section class="card">${refusalNote(found)}</section>`,
    })
  const account = found.body as Found
  const at = encodeURIComponent(account.did)
  const [usage, quota, access, events] = [
    await ask(desk, `/v1/accounts/${at}/usage`),
    await ask(desk, `/v1/admin/accounts/${at}/quota`),
    await ask(desk, `/v1/admin/accounts/${at}/access`),
    await ask(desk, `/v1/admin/audit?limit=10&subject=${at}`),
  ]
  const { recordsCount, blobsCount, storageBytes, lastActive } = usage.ok ? (usage.body as Usage) : noUsage
  const limits = quota.ok ? (quota.body as Quota).quota : { records: 0, blobBytes: 0 }
  const history = events.ok
    ? (events.body as { events: { action: string; actor: string; reason?: string; createdAt: string }[] }).events
    : []
  return framed(desk, {
    title: account.handle ?? account.did,
    body: html`
<section class="card">
  ${factList({
    DID: html`<code>${account.did}</code>`,
    Handle: account.handle ?? 'none',
    'Further handles': account.furtherHandles.length === 0 ? null : account.furtherHandles.join(', '),
    'Email address':
      account.email === null
        ? 'none'
        : `${account.email}${account.emailConfirmedAt === null ? ' (not confirmed)' : ''}`,
    Status: account.takedownRef === null ? account.status : `${account.status} (${account.takedownRef})`,
    Since: minuteOf(account.createdAt),
    'Last write': lastActive === null ? 'none' : minuteOf(lastActive),
    Records: `${recordsCount}${limits.records === 0 ? '' : ` of ${limits.records}`}`,
    Blobs: `${blobsCount}, ${sizeOf(storageBytes)}${limits.blobBytes === 0 ? '' : ` of ${sizeOf(limits.blobBytes)}`}`,
    'Recovery share': account.escrow,
    Flags:
      account.flags.length === 0
        ? null
        : account.flags.map(({ val, labelerDid }) => `${val} by ${labelerDid}`).join(', '),
  })}
  ${mayRole(desk.who.role, 'moderate') && html`<p class="links"><a href="/admin/data?${new URLSearchParams({ did: account.did }).toString()}">Records and blobs</a></p>`}
</section>
${access.ok && accessPart(desk, account.did, access.body as Access)}
${actsPart(desk, account)}
<section class="card">
  <h2>What operators did</h2>
  ${listOf(
    history.map(({ action, actor, reason, createdAt }) =>
      noteRow(action.replaceAll('_', ' '), [
        reason !== undefined && html`because: ${reason}`,
        html`by ${actor}, ${minuteOf(createdAt)}`,
      ]),
    ),
    'Nothing was done.',
  )}
</section>`,
  })
}

const accessKinds: Readonly<Record<string, string>> = {
  session: 'Session of an app',
  app: 'App',
  wallet: 'Session of a wallet',
  browser: 'Browser',
  agent: 'Agent',
  'app-password': 'App password',
}
/** More of them would make the page too large; the command lists all. */
const MAX_ACCESS = 20

const accessPart = (desk: Desk, did: string, { access }: Access): Html => html`
<section class="card">
  <h2>Who has access</h2>
  ${access.length > MAX_ACCESS && html`<p class="note">${MAX_ACCESS} of ${access.length}; “holdfast account sessions” lists all.</p>`}
  ${listOf(
    access.slice(0, MAX_ACCESS).map(({ id, kind, name, openedAt, usedAt, openedWith, openedFrom }, i) =>
      noteRow(
        html`${accessKinds[kind] ?? kind}${name !== null && html`: ${name}`}`,
        [
          openedWith !== null && html`${openedWith}${openedFrom !== null && html`, from the network ${openedFrom}`}`,
          html`${openedAt !== null && html`since ${minuteOf(openedAt)}`}${usedAt !== null && html`, used ${minuteOf(usedAt)}`}`,
        ],
        mayRole(desk.who.role, 'endAccess')
          ? actForm(desk, {
              id: `access-${i}`,
              act: 'end-one-access',
              back: accountUrl(did),
              button: 'End',
              fields: { did, id },
            })
          : null,
      ),
    ),
    'There are no sessions, apps or agents.',
  )}
</section>`

const noUsage: Usage = { recordsCount: 0, blobsCount: 0, storageBytes: 0, lastActive: null }

/** The acts that the role permits. The endpoints decide again. */
function actsPart(desk: Desk, { did, status, takedownRef, hasPassword, email, handle, invitesDisabled }: Found): Html {
  const { role } = desk.who
  const form = (act: string, button: string, more: Partial<ActForm> = {}): Html =>
    actForm(desk, { id: act, act, back: accountUrl(did), button, ...more, fields: { did, ...more.fields } })
  const subject = html`${field({ id: 'subject', name: 'subject', label: 'AT URI of the record, or CID of the blob', required: true, maxLength: 1000 })}${field({ id: 'subject-cid', name: 'cid', label: 'CID of the record', maxLength: 200 })}`
  return html`
<section class="card">
  <h2>Act</h2>
  ${
    mayRole(role, 'moderate') &&
    html`
    ${takedownRef === null ? form('takedown', 'Take the account down', { isDangerous: true }) : form('restore', 'Lift the takedown')}
    ${form('takedown', 'Take a record or a blob down', { id: 'takedown-subject', inputs: subject, isDangerous: true })}
    ${form('restore', 'Restore a record or a blob', { id: 'restore-subject', inputs: html`${field({ id: 'restored', name: 'subject', label: 'AT URI of the record, or CID of the blob', required: true, maxLength: 1000 })}${field({ id: 'restored-cid', name: 'cid', label: 'CID of the record', maxLength: 200 })}` })}
    ${invitesDisabled ? form('enable-invites', 'Let the account invite again') : form('disable-invites', 'Stop the account from inviting')}`
  }
  ${mayRole(role, 'endAccess') && form('end-access', 'End all its sessions', { isDangerous: true })}
  ${mayRole(role, 'mail') && hasPassword && email !== null && form('reset-mail', 'Mail a reset code')}
  ${mayRole(role, 'mail') && email !== null && status !== 'deleted' && form('mail', 'Write to the holder', { inputs: html`${field({ name: 'about', label: 'Subject', maxLength: 200 })}<div class="field"><label for="content">Text</label><textarea id="content" name="content" rows="6" maxlength="20000" required></textarea></div>` })}
  ${mayRole(role, 'operate') && form('quota', 'Set its quota', { inputs: html`${field({ name: 'records', label: 'Records', hint: '0 is no limit, “default” is that of the server; empty changes nothing.', maxLength: 16 })}${field({ name: 'blobBytes', label: 'Bytes of blobs', maxLength: 16 })}` })}
  ${
    mayRole(role, 'repairAccounts') &&
    html`
    ${form('address', 'Change the email address', { inputs: field({ name: 'email', label: 'New email address', type: 'email', required: true }) })}
    ${form('handle', 'Change the handle', { inputs: field({ id: 'new-handle', name: 'handle', label: 'New handle', value: handle ?? '', required: true, maxLength: 253 }) })}
    ${hasPassword && form('reset-code', 'Show a reset code', { isDangerous: true })}`
  }
  ${mayRole(role, 'deleteAccounts') && form('delete', 'Delete the account', { isDangerous: true })}
</section>`
}
