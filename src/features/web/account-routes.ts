/** The account page and what can be done on it. Every form names its account and carries the token of the page. */
import { route } from '../../http/endpoint.ts'
import { chargeAddress } from '../../http/limiting.ts'
import { parseDid } from '../../protocol/identifiers.ts'
import { type Account, chargeMail, loginWithPassword } from '../accounts/accounts.ts'
import { changeEmail, changePassword, requestEmailUpdate } from '../account-changes/account-changes.ts'
import { createAppPassword, deleteSession, findSession, listAppPasswords, listSessions, revokeAppPassword } from '../auth/auth.ts'
import { changeHandle } from '../identity/identity.ts'
import { deleteOAuthSession, findOAuthSession, oauthSessionsOf } from '../oauth/oauth.ts'
import { accountPage, type AccountView, type Section } from './account-page.ts'
import { countOtherSignIns, deleteOtherSignIns } from './device-store.ts'
import { type Device, deviceOf, requireFormToken, requireNavigation, requireOwnForm, signIn, signOut } from './devices.ts'
import { faultOf, readForm, seeOther, type PageCall } from './page-parts.ts'
import { messages } from './sign-in.ts'

interface Holder {
  account: Account
  device: Device
}

/** Who is signed in here, recently enough: the account that is asked for, or the one that signed in last. */
async function holderOf(call: PageCall, wanted: string | null): Promise<Holder | null> {
  const device = await deviceOf(call)
  const did = wanted === null ? null : parseDid(wanted)
  const found = device?.accounts.find(({ account }) => did === null || account.did === did)
  return device && found && !found.isStale ? { account: found.account, device } : null
}

type Shown = Partial<Pick<AccountView, 'outcome' | 'secret' | 'awaitsEmailCode'>>

async function shown({ ctx }: PageCall, { account, device }: Holder, { outcome = null, secret = null, awaitsEmailCode = false }: Shown = {}): Promise<Response> {
  const { db, clock } = ctx
  const { did } = account
  const now = clock.now()
  const [apps, appPasswords, sessions, otherBrowsers] = await Promise.all([
    oauthSessionsOf(db, did, now),
    listAppPasswords(db, did),
    listSessions(db, did, now),
    countOtherSignIns(db, did, device.tokenHash, now),
  ])
  return accountPage(ctx, { account, device, apps, appPasswords, sessions, otherBrowsers, outcome, secret, awaitsEmailCode })
}

const notices = new Map<string, { section: Section; notice: string }>([
  ['app', { section: 'apps', notice: 'The app has no access any more.' }],
  ['app-password', { section: 'app-passwords', notice: 'The app password is revoked, and what was signed in with it is signed out.' }],
  ['session', { section: 'sessions', notice: 'It is signed out.' }],
  ['handle', { section: 'handle', notice: 'Your handle is changed.' }],
  ['email', { section: 'email', notice: 'Your email address is changed.' }],
  ['password', { section: 'password', notice: 'Your password is changed. You are signed out everywhere else.' }],
])

async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const { searchParams } = call.url
  const holder = await holderOf(call, searchParams.get('account'))
  if (!holder) return seeOther('/account/sign-in')
  const done = notices.get(searchParams.get('done') ?? '')
  return shown(call, holder, { outcome: done ? { ...done, fault: null } : null })
}

/** A form of the page. `work` answers what to show; null sends the person back to the page, with the notice of `done`. */
const act = (path: string, done: string, work: (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<Response | null>) =>
  route('POST', `/account/${path}`, { async handler(call) {
    requireOwnForm(call)
    const form = await readForm(call)
    const holder = await holderOf(call, form.get('account'))
    if (!holder) return seeOther('/account/sign-in')
    requireFormToken(holder.device, form)
    const response = await work(call, holder, form)
    return response ?? seeOther(`/account?${new URLSearchParams({ account: holder.account.did, done })}#${notices.get(done)?.section ?? ''}`)
  } })

/** Null when `work` went well; the page with what went wrong when the person can put it right. Throws any other fault. */
async function showFault(call: PageCall, holder: Holder, section: Section, work: () => Promise<unknown>): Promise<Response | null> {
  const fault = await faultOf(work)
  return fault === null ? null : shown(call, holder, { outcome: { section, fault, notice: null } })
}

export const accountRoutes = [
  route('GET', '/account', { handler: show }),
  act('sign-out', '', async (call, { account, device }) => {
    await signOut(call, device, account.did)
    return seeOther(device.accounts.length > 1 ? '/account' : '/account/sign-in?done=signed-out')
  }),
  act('apps', 'app', async ({ ctx }, { account }, form) => {
    await ctx.db.transaction(async (tx) => {
      const session = await findOAuthSession(tx, form.get('id') ?? '')
      if (session?.did === account.did) await deleteOAuthSession(tx, session.id)
    })
    return null
  }),
  act('sessions', 'session', async ({ ctx }, { account }, form) => {
    await ctx.db.transaction(async (tx) => {
      const session = await findSession(tx, form.get('id') ?? '', account.did)
      if (session) await deleteSession(tx, session.id)
    })
    return null
  }),
  act('browsers', 'session', async ({ ctx }, { account, device }) => {
    await ctx.db.transaction((tx) => deleteOtherSignIns(tx, account.did, device.tokenHash))
    return null
  }),
  act('app-passwords', '', async (call, holder, form) => {
    const wanted = { name: (form.get('name') ?? '').trim(), privileged: form.get('privileged') === 'yes', personalDetails: false }
    let secret: AccountView['secret'] = null
    const refused = await showFault(call, holder, 'app-passwords', async () => {
      secret = await createAppPassword(call.ctx, holder.account.did, wanted)
    })
    return refused ?? shown(call, holder, { secret })
  }),
  act('app-passwords/revoke', 'app-password', async ({ ctx }, { account }, form) => {
    await revokeAppPassword(ctx, account.did, form.get('name') ?? '')
    return null
  }),
  act('handle', 'handle', async (call, holder, form) => {
    chargeAddress(call, ['updateHandle'])
    return showFault(call, holder, 'handle', () => changeHandle(call.ctx, holder.account.did, (form.get('handle') ?? '').trim().replace(/^@/, '')))
  }),
  act('email', 'email', changeAddress),
  act('password', 'password', async (call, holder, form) => {
    chargeAddress(call, ['createSession'])
    const { did } = holder.account
    const refused = await showFault(call, holder, 'password', () => changePassword(call.ctx, did, form.get('current') ?? '', form.get('next') ?? ''))
    if (refused === null) await signIn(call, did, { remember: false })
    return refused
  }),
]

/** Where the present address is confirmed, a code that is mailed there has to come along. */
async function changeAddress(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response | null> {
  const { ctx } = call
  chargeAddress(call, ['createSession'])
  const fail = (fault: string | null, awaitsEmailCode: boolean, notice: string | null = null) => shown(call, holder, { outcome: { section: 'email', fault, notice }, awaitsEmailCode })
  if (holder.account.hasPassword) {
    const login = await loginWithPassword(ctx, holder.account.did, form.get('password') ?? '')
    if (!login.ok) return fail(messages[login.fault], form.has('code'))
  }
  const code = form.get('code')?.trim()
  if (code === undefined) chargeMail(call, holder.account.did, 'update_email')
  if (code === undefined && (await requestEmailUpdate(ctx, holder.account.did))) return fail(null, true, 'We have sent you a code. Please enter it together with the new address.')
  const fault = await faultOf(() => changeEmail(ctx, holder.account.did, form.get('email') ?? '', code))
  return fault === null ? null : fail(fault, code !== undefined)
}
