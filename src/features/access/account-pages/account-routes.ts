/** The account page and its forms. Every form names its account and carries the token of the page. */
import type { Endpoint } from '../../../http/endpoint.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import type { Phrase } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import { allOf } from '../../../base/all-of.ts'
import type { Context } from '../../../platform/context.ts'
import { furtherHandlesOf, type Account } from '../../identity/accounts/accounts.ts'
import { usableInvitesOf } from '../../identity/invites/invites.ts'
import { announceIn, eventsOf } from '../../identity/account-events/account-events.ts'
import { quotaOf } from '../../identity/quotas/quotas.ts'
import { blobCounts } from '../../data/blobs/blobs.ts'
import { recordTotals } from '../../data/repo/repo.ts'
import { chargeMail, requestCode } from '../../identity/mails/mails.ts'
import { loginWithPassword } from '../../identity/passwords/passwords.ts'
import { withinRefusedAddresses } from '../../identity/addresses/addresses.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  activateAccount,
  changeEmail,
  changePassword,
  confirmEmail,
  deactivateAccount,
  deleteOwnAccount,
  deleteProven,
  requestDeletionCode,
  requestEmailUpdate,
} from '../../identity/account-changes/account-changes.ts'
import {
  createAppPassword,
  createScopedAppPassword,
  deleteSession,
  deleteWalletSession,
  findSession,
  listAppPasswords,
  listSessions,
  listWalletSessions,
  revokeAppPassword,
  type AppPassword,
} from '../sessions/sessions.ts'
import {
  archiveOfAccount,
  keptArchive,
  keptArchives,
  scheduleArchives,
} from '../../data/account-archives/account-archives.ts'
import { isMoving } from '../../identity/migration/migration.ts'
import { endAgent, listAgents } from '../../agents/agents/agents.ts'
import { addHandle, changeHandle, externalHandle, removeHandle } from '../../identity/handles/handles.ts'
import { publishedDids } from '../../identity/identity/identity.ts'
import { deleteOAuthSession, denyAsHolder, findOAuthSession, oauthSessionsOf } from '../oauth/oauth.ts'
import { cancelTransfer, revokeTransferDevice } from '../../identity/transfers/transfers.ts'
import { askedFactors, factorsOf } from '../factors/factors.ts'
import { accountPage } from './account-page.ts'
import { accountTexts } from './account-texts.ts'
import { lists, type AccountView, type Section } from './account-view.ts'
import { wantedTerms } from './scope-parts.ts'
import { formAddress } from './form-page.ts'
import { sharingOf } from './sharing-page.ts'
import { ownDomainRoutes, ownDomainUrl } from './own-domain-page.ts'
import { forgetDevice, toldDevices } from './push-part.ts'
import { walletMatters } from './wallet-matters-view.ts'
import {
  deleteOtherSignIns,
  deleteSignIn,
  holderForm,
  holderPage,
  holderUrl,
  listBrowsers,
  provenForm,
  signIn,
  signInAgainUrl,
  signOut,
  withPassword,
  type Holder,
} from '../pages/pages.ts'
import { faultOf, pageRefusal, seeOther, type Fault, type PageCall } from '../page-parts/page-parts.ts'

/** Events shown on the account page; the page of events lists all. */
const SHOWN_EVENTS = 3

type PageOptions = Partial<Pick<AccountView, 'outcome' | 'secret' | 'awaitsEmailCode'>>

async function renderAccountPage(
  call: PageCall,
  { account, device }: Holder,
  { outcome = null, secret = null, awaitsEmailCode = false }: PageOptions = {},
): Promise<Response> {
  const { ctx, url } = call
  const { db, clock } = ctx
  const { did } = account
  const now = clock.now()
  const { handlesAndInvites, ...parts } = await allOf({
    apps: oauthSessionsOf(db, did, now),
    agents: listAgents(db, did),
    appPasswords: listAppPasswords(db, did),
    sessions: listSessions(db, did, now),
    browsers: listBrowsers(db, did, now),
    walletSessions: listWalletSessions(db, did, now),
    wallet: walletMatters(ctx, account),
    pushDevices: toldDevices(ctx, did),
    storage: storageOf(ctx, did),
    keptArchives: keptArchives(ctx, did),
    factors: factorsOf(ctx, account),
    sharing: sharingOf(ctx, did),
    events: eventsOf(ctx, did, { after: null, limit: SHOWN_EVENTS }),
    handlesAndInvites: handlesAndInvitesOf(ctx, account),
    isMoving: account.deactivatedAt === null ? false : isMoving(db, did),
  })
  return accountPage(call, {
    account,
    device,
    ...parts,
    ...handlesAndInvites,
    alone: outcome === null && secret === null ? aloneIn(url.searchParams) : null,
    outcome,
    secret,
    awaitsEmailCode,
  })
}

function aloneIn(parameters: URLSearchParams): AccountView['alone'] {
  const list = lists.find((name) => name === parameters.get('list'))
  const from = parameters.get('from') ?? ''
  return list === undefined ? null : { list, from: /^\d{1,6}$/.test(from) ? Number(from) : 0 }
}

/** The account's handles except the first, and the invites that it can give away. */
async function handlesAndInvitesOf(
  ctx: Context,
  account: Account,
): Promise<Pick<AccountView, 'invites' | 'furtherHandles'>> {
  const [invites, furtherHandles] = await Promise.all([
    usableInvitesOf(ctx, account),
    furtherHandlesOf(ctx.db, account.did),
  ])
  return { invites, furtherHandles }
}

async function storageOf(ctx: Context, did: Did): Promise<AccountView['storage']> {
  const { db } = ctx
  const [quota, records, { bytes }] = await Promise.all([
    quotaOf(ctx, db, did),
    recordTotals.read(db, did),
    blobCounts.stored(ctx, did),
  ])
  return { quota, used: { records, blobBytes: bytes } }
}

/** What a form has done, by the `done` parameter. The notice is null if the section itself shows the result. */
const notices = new Map<string, { section: Section; notice: Phrase | null }>([
  ['app', { section: 'apps', notice: accountTexts.doneApp }],
  ['agent', { section: 'agents', notice: accountTexts.doneAgent }],
  ['push', { section: 'pushes', notice: accountTexts.donePush }],
  ['app-password', { section: 'app-passwords', notice: accountTexts.doneAppPassword }],
  ['session', { section: 'sessions', notice: accountTexts.doneSession }],
  ['request', { section: 'wallet', notice: accountTexts.doneRequest }],
  ['transfer', { section: 'wallet', notice: accountTexts.doneTransfer }],
  ['device', { section: 'wallet', notice: accountTexts.doneDevice }],
  ['handle', { section: 'handle', notice: accountTexts.doneHandle }],
  ['handle-added', { section: 'handles', notice: accountTexts.doneHandleAdded }],
  ['handle-removed', { section: 'handles', notice: accountTexts.doneHandleRemoved }],
  ['email-code', { section: 'confirm-email', notice: accountTexts.doneCodeSent }],
  ['email-confirmed', { section: 'account', notice: accountTexts.doneEmailConfirmed }],
  ['reactivated', { section: 'account', notice: accountTexts.doneReactivated }],
  ['deactivated', { section: 'account', notice: null }],
  ['delete-code', { section: 'delete', notice: accountTexts.doneCodeSent }],
  ['email', { section: 'email', notice: accountTexts.doneEmail }],
  ['archive-schedule', { section: 'archive', notice: accountTexts.doneSchedule }],
  ['password', { section: 'password', notice: accountTexts.donePassword }],
])

function show(call: PageCall, holder: Holder): Promise<Response> {
  const done = notices.get(call.url.searchParams.get('done') ?? '')
  return renderAccountPage(call, holder, { outcome: done ? { ...done, fault: null, typed: null } : null })
}

/** Performs a form's action. Returns a page of its own, or null for the account page with a notice. */
type Work = (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<Response | null>

/** Declare a form of the page, and its address. `done` names the notice of success. */
const act = (
  path: string,
  section: Section,
  done: string,
  work: Work,
  { declare = holderForm, ...options }: Parameters<typeof holderForm>[2] & { declare?: typeof holderForm } = {},
): Endpoint[] => [
  declare(
    `/account/${path}`,
    async (call, holder, form) => {
      const place = `/account#${notices.get(done)?.section ?? section}`
      return (await work(call, holder, form)) ?? seeOther(holderUrl(place, holder.account.did, { done }))
    },
    options,
  ),
  formAddress(`/account/${path}`, `/account#${section}`),
]

/** Declare a form that changes the further handles. */
const actOnHandles = (
  path: string,
  done: string,
  work: (call: PageCall, did: Did, form: URLSearchParams) => Promise<unknown>,
): Endpoint[] =>
  act(
    path,
    'handles',
    done,
    (call, holder, form) =>
      showFault(call, holder, { section: 'handles', form }, async () => {
        const { did } = holder.account
        await charge(call, { name: 'updateHandle', key: did })
        await work(call, did, form)
      }),
    { declare: provenForm },
  )

/** Returns null if `work` succeeds, else the page with the fault and the input in the form. */
async function showFault(
  call: PageCall,
  holder: Holder,
  { section, form: typed }: { section: Section; form: URLSearchParams },
  work: () => unknown,
): Promise<Response | null> {
  const fault = await faultOf(work)
  return fault && renderAccountPage(call, holder, { outcome: { section, fault, notice: null, typed } })
}

export const accountRoutes: Endpoint[] = [
  holderPage('/account', show),
  ...ownDomainRoutes,
  ...act('sign-out', 'account', '', async (call, { account, device }) => {
    await signOut(call, device, account.did)
    return seeOther(device.accounts.length > 1 ? '/account' : '/account/sign-in?done=signed-out')
  }),
  ...act('apps', 'apps', 'app', async (call, { account }, form) => {
    await call.ctx.db.transaction(async (tx) => {
      const session = await findOAuthSession(tx, form.get('id') ?? '')
      if (session?.did !== account.did) return
      await deleteOAuthSession(tx, session.id)
      await announceIn(tx, call, 'appEnded', account.did, { clientId: session.clientId })
    })
    return null
  }),
  ...act('agents', 'agents', 'agent', async (call, { account }, form) => {
    await endAgent(call, account.did, form.get('id') ?? '')
    return null
  }),
  ...act('pushes', 'pushes', 'push', async ({ ctx }, { account }, form) => {
    await forgetDevice(ctx, account.did, form.get('id') ?? '')
    return null
  }),
  ...act('sessions', 'sessions', 'session', async (call, { account }, form) => {
    await call.ctx.db.transaction(async (tx) => {
      const session = await findSession(tx, form.get('id') ?? '', account.did)
      if (!session) return
      await deleteSession(tx, session.id)
      await announceIn(tx, call, 'signedOutElsewhere', account.did)
    })
    return null
  }),
  ...act('wallet-sessions', 'sessions', 'session', async (call, { account: { did } }, form) => {
    await call.ctx.db.transaction(async (tx) => {
      if ((await deleteWalletSession(tx, did, form.get('id') ?? '')) > 0)
        await announceIn(tx, call, 'signedOutElsewhere', did)
    })
    return null
  }),
  ...act('wallet/requests', 'wallet', 'request', (call, holder, form) =>
    showFault(call, holder, { section: 'wallet', form }, () =>
      denyAsHolder(call, holder.account, form.get('id') ?? ''),
    ),
  ),
  ...act('wallet/transfer', 'wallet', 'transfer', async (call, { account: { did } }) => {
    await cancelTransfer(call, did)
    return null
  }),
  ...act('wallet/devices', 'wallet', 'device', async (call, { account: { did } }, form) => {
    await revokeTransferDevice(call, did, form.get('id') ?? '')
    return null
  }),
  ...act('browsers', 'sessions', 'session', async (call, { account: { did }, device }, form) => {
    const id = form.get('id')
    await call.ctx.db.transaction(async (tx) => {
      const ended = await (id === null ? deleteOtherSignIns(tx, did, device.tokenHash) : deleteSignIn(tx, id, did))
      if (ended > 0) await announceIn(tx, call, 'signedOutElsewhere', did)
    })
    return null
  }),
  ...act('app-passwords', 'app-passwords', '', addAppPassword, { declare: provenForm, isOnce: true }),
  ...act('app-passwords/revoke', 'app-passwords', 'app-password', async (call, { account }, form) => {
    await revokeAppPassword(call, account.did, form.get('name') ?? '')
    return null
  }),
  ...act('archive', 'archive', '', download, { long: true }),
  ...act(
    'archive/kept',
    'archive',
    '',
    (call, { account }, form) => keptArchive(call, account.did, form.get('name') ?? ''),
    { long: true },
  ),
  ...act('archive/schedule', 'archive', 'archive-schedule', (call, holder, form) =>
    showFault(call, holder, { section: 'archive', form }, () => {
      const every = form.get('every')
      return scheduleArchives(call, holder.account.did, every === 'weekly' || every === 'monthly' ? every : null)
    }),
  ),
  ...act('reactivate', 'account', 'reactivated', (call, holder, form) =>
    showFault(call, holder, { section: 'account', form }, async () => {
      if (!activityOf(holder.account).active) await activateAccount(call, holder.account.did)
    }),
  ),
  ...act(
    'deactivate',
    'deactivate',
    'deactivated',
    (call, holder, form) =>
      showFault(call, holder, { section: 'deactivate', form }, () => deactivateAccount(call, holder.account.did, null)),
    { declare: provenForm },
  ),
  ...act('delete/code', 'delete', 'delete-code', (call, holder, form) =>
    showFault(call, holder, { section: 'delete', form }, async () => {
      const { did } = holder.account
      await chargeMail(call, did, 'delete_account')
      await requestDeletionCode(call, did)
    }),
  ),
  ...act('delete', 'delete', '', async (call, holder, form) => {
    const { did } = holder.account
    const token = (form.get('code') ?? '').trim()
    const asked = await askedFactors(call.ctx, holder.account)
    if (asked?.mailed === false && token !== '') return deleteWithFactor(call, holder, form, token)
    const refused = await showFault(call, holder, { section: 'delete', form }, async () => {
      await charge(call, 'deleteAccount')
      await deleteOwnAccount(call, { did, password: form.get('current') ?? '', token })
    })
    return refused ?? seeOther('/account/sign-in?done=deleted')
  }),
  ...act('handle', 'handle', 'handle', takeHandle, { declare: provenForm }),
  ...actOnHandles('handles', 'handle-added', (call, did, form) => addHandle(call, did, wantedHandle(call.ctx, form))),
  ...actOnHandles('handles/remove', 'handle-removed', (call, did, form) =>
    removeHandle(call, did, form.get('handle') ?? ''),
  ),
  ...act('email/code', 'confirm-email', 'email-code', (call, holder, form) =>
    showFault(call, holder, { section: 'confirm-email', form }, async () => {
      const { did } = holder.account
      await chargeMail(call, did, 'confirm_email')
      await requestCode(call, did, 'confirm_email')
    }),
  ),
  ...act('email/confirm', 'confirm-email', 'email-confirmed', (call, holder, form) =>
    showFault(call, holder, { section: 'confirm-email', form }, () =>
      confirmEmail(call, holder.account.did, form.get('email') ?? '', (form.get('code') ?? '').trim()),
    ),
  ),
  ...act('email', 'email', 'email', changeAddress),
  ...act('password', 'password', 'password', takePassword, { isOnce: true }),
]

async function takePassword(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response | null> {
  const { did } = holder.account
  const refused = await showFault(call, holder, { section: 'password', form }, async () => {
    await charge(call, 'createSession')
    await changePassword(call, did, form.get('current') ?? '', form.get('next') ?? '')
  })
  if (refused === null) await signIn(call, did, { remember: holder.isRemembered, passedFactor: holder.passedFactor })
  return refused
}

/** Like a sign-in, the deletion asks for the second factor on a second page. */
async function deleteWithFactor(
  call: PageCall,
  holder: Holder,
  form: URLSearchParams,
  token: string,
): Promise<Response> {
  const { did } = holder.account
  const section = { section: 'delete', form } as const
  const limited = await showFault(call, holder, section, () => charge(call, 'deleteAccount'))
  if (limited) return limited
  const proof = new URLSearchParams(form)
  if (form.has('current')) proof.set('password', form.get('current') ?? '')
  proof.delete('current')
  const again = ({ field, ...fault }: Fault) =>
    renderAccountPage(call, holder, {
      outcome: {
        section: 'delete',
        fault: { ...fault, field: field === 'password' ? 'current' : field },
        notice: null,
        typed: form,
      },
    })
  return withPassword(call, proof, {
    identifier: did,
    isProof: true,
    again,
    async act(account, revalidate) {
      if (account.did !== did) throw pageRefusal('The form belongs to another account.')
      const refused = await showFault(call, holder, section, () => deleteProven(call, { did, token, revalidate }))
      return refused ?? seeOther('/account/sign-in?done=deleted')
    },
  })
}

async function addAppPassword(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response> {
  let secret: AccountView['secret'] = null
  const refused = await showFault(call, holder, { section: 'app-passwords', form }, async () => {
    secret = await makeAppPassword(call, holder.account.did, form)
  })
  return refused ?? renderAccountPage(call, holder, { secret })
}

/** Makes an app password of the standard lexicon, unless the form limits it. */
function makeAppPassword(call: PageCall, did: Did, form: URLSearchParams): Promise<AppPassword & { password: string }> {
  const name = (form.get('name') ?? '').trim()
  const isStandard = ['preset', 'scope', 'ends'].every((field) => (form.get(field) ?? '').trim() === '')
  if (!isStandard) return createScopedAppPassword(call, did, name, wantedTerms(form))
  const privileged = form.get('privileged') === 'yes'
  return createAppPassword(call, did, { name, privileged, personalDetails: false, scope: null, expiresAt: null })
}

async function download(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response | null> {
  const { did } = holder.account
  let archive: Response | null = null
  const refused = await showFault(call, holder, { section: 'archive', form }, async () => {
    await charge(call, { name: 'exportAccount', key: did })
    archive = await archiveOfAccount(call, did)
  })
  return refused ?? archive
}

async function takeHandle(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response | null> {
  const { ctx } = call
  const { did } = holder.account
  const wanted = wantedHandle(ctx, form)
  const external = externalHandle(ctx, wanted)
  let isMissing = false
  const refused = await showFault(call, holder, { section: 'handle', form }, async () => {
    await charge(call, 'updateHandle')
    if (external !== null) {
      const { dns, web } = await publishedDids(ctx, external)
      isMissing = (dns ?? web) !== did
    }
    if (!isMissing) await changeHandle(call, did, wanted)
  })
  return isMissing && external !== null ? seeOther(ownDomainUrl(did, external)) : refused
}

/** A handle under the server's first domain may be typed without the domain. */
function wantedHandle({ config }: Context, form: URLSearchParams): string {
  const typed = (form.get('handle') ?? '').trim().replace(/^@/, '')
  return typed === '' || typed.includes('.') ? typed : `${typed}.${config.availableUserDomains[0]}`
}

async function changeAddress(call: PageCall, holder: Holder, form: URLSearchParams): Promise<Response | null> {
  const { account, isProven } = holder
  // Anyone who reads the mail can set a password. If the account has a password, the form asks for it.
  if (!account.hasPassword && !isProven) return seeOther(signInAgainUrl(account))
  let notice: Phrase | null = null
  const fault = await faultOf(async () => {
    notice = await moveAddress(call, account, form)
  })
  if (fault === null && notice === null) return null
  return renderAccountPage(call, holder, {
    outcome: { section: 'email', fault, notice, typed: form },
    awaitsEmailCode: notice !== null || form.has('code'),
  })
}

/**
 * Change the email address. If the current one is confirmed, this requires a code that was mailed to it. Returns null
 * once the address is changed, else the notice that says what to do first. Throws `AuthenticationRequired` if the
 * password is wrong, and `RateLimitExceeded` after too many attempts.
 */
async function moveAddress(
  call: PageCall,
  { did, hasPassword }: Account,
  form: URLSearchParams,
): Promise<Phrase | null> {
  await charge(call, 'createSession')
  if (hasPassword)
    await loginWithPassword(call, did, form.get('current') ?? '', () => authenticationRequired('Invalid password'), {
      isSignedIn: true,
    })
  const code = form.get('code')?.trim()
  if (code === undefined) {
    await chargeMail(call, did, 'update_email')
    if (await requestEmailUpdate(call, did)) return accountTexts.emailCodeSent
  }
  await withinRefusedAddresses(call, () => changeEmail(call, did, (form.get('email') ?? '').trim(), code))
  return null
}
