/**
 * The authorization endpoint. An app sends the browser here, the account holder decides on the page, and the browser
 * returns to the app.
 *
 * Source: RFC 6749, 3.1 and 4.1; RFC 9126, section 4.
 */
import { route } from '../../../http/endpoint.ts'
import { charge } from '../../../http/limiting.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { isRegistered } from '../../../protocol/redirect-uris.ts'
import { inEnglish, type Wording } from '../../../http/html.ts'
import { layoutTexts } from '../../../http/layout-texts.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { BASE_SCOPE, narrowedScopes } from '../../../protocol/scopes.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import {
  chosenAccount,
  type Device,
  deviceOf,
  formProof,
  offerEntry,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  signIn,
  signOut,
  withPassword,
  type EnterPage,
} from '../pages/pages.ts'
import {
  accountName,
  type Fault,
  faultAt,
  faultOf,
  type PageCall,
  pageRefusal,
  passkeyAnswer,
  seeOther,
  sentOnce,
  signedInElsewhere,
} from '../page-parts/page-parts.ts'
import { decideRequest, denial, openRequest, requestHash, type Decision } from './authorization-requests.ts'
import {
  authorizePage,
  HAS_ACCOUNT,
  WITH_NEW_PASSWORD,
  SIGNED_IN_FOR_THIS,
  mustSignInAgain,
  preselected,
  signUpUrl,
  type Filled,
  type SharedAccount,
} from './authorize-page.ts'
import { listSharedAccounts } from '../delegations/delegations.ts'
import { clientOf } from './clients.ts'
import { consentTexts as texts } from './consent-texts.ts'
import { expanded, expandedWithin } from './permission-sets.ts'
import { spaceNamesIn } from './space-names.ts'
import { deleteRequest, type OpenRequest, type PendingRequest } from './authorization-request-store.ts'
import { consentAgain, consentFor, hintedAccount, type OpenedRequest } from './wallet-consents.ts'

interface Opened extends OpenedRequest {
  requestUri: string
}

const gone = () => pageRefusal(inEnglish(layoutTexts.requestGone))

/**
 * Returns the pushed request that the browser names. Deletes the request if the browser's `client_id` is another
 * client's.
 *
 * Throws `InvalidRequest` if the request was not pushed, is decided or expired, belongs to another client, or has a
 * redirect URI that the client no longer lists; throws as `clientOf` does if the client's metadata is refused.
 */
async function openedRequest({ ctx }: PageCall, given: URLSearchParams): Promise<Opened> {
  const requestUri = given.get('request_uri')
  if (given.has('request') || requestUri === null)
    throw pageRefusal('The app sent you here without submitting its request to this server first.')
  const idHash = requestHash(requestUri)
  const pending = idHash && (await openRequest(ctx, idHash))
  if (!idHash || !pending) throw gone()
  if (given.getAll('client_id').some((clientId) => clientId !== pending.request.clientId)) {
    await deleteRequest(ctx.db, idHash)
    throw pageRefusal('The request belongs to another app.')
  }
  const client = await clientOf(ctx, pending.request.clientId, { mayFetch: false })
  if (!isRegistered(pending.request.redirectUri, client.redirectUris))
    throw pageRefusal('The app wants to send you to an address that it has not registered.')
  return { requestUri, idHash, pending }
}

/** `GET`: show the page. `prompt` may lead to sign-up instead (`create`) or to the error `login_required` (`none`). */
async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  if (!call.url.searchParams.has('client_id'))
    throw pageRefusal('The address does not contain the client identifier of the app.')
  const opened = await openedRequest(call, call.url.searchParams)
  const { prompt } = opened.pending.request
  if (prompt === 'create' && !call.url.searchParams.has(HAS_ACCOUNT)) return seeOther(signUpUrl(opened))
  if (prompt === 'none')
    return decided(call, opened, {
      kind: 'refuse',
      error: 'login_required',
      reason: 'The account holder has to be asked',
    })
  const isReset = call.url.searchParams.get(HAS_ACCOUNT) === WITH_NEW_PASSWORD
  return renderConsent(call, opened, { filled: null, fault: null, notice: isReset ? texts.wasReset : null })
}

interface Shown {
  filled: Filled | null
  fault: Fault | null
  notice?: Wording | null
  /** Whether the person has just used the part of the page for wallets. */
  usesWallet?: boolean
}

/**
 * Shows the page of a request. A page that is shown again with its input keeps its offer of a wallet, and makes no new
 * one.
 */
async function renderConsent(
  call: PageCall,
  opened: Opened,
  { filled, fault, notice = null, usesWallet = false }: Shown,
): Promise<Response> {
  const expansion = await expanded(call.ctx, opened.pending.request.clientId, opened.pending.request.scopes)
  if (!expansion.ok) return decided(call, opened, { kind: 'refuse', error: 'invalid_scope', reason: expansion.reason })
  const { scopes } = expansion
  const names = await spaceNamesIn(call.ctx, scopes)
  const device = await deviceOf(call)
  const shared = await sharedWith(call, device)
  const hinted = await hintedAccount(call.ctx, opened.pending)
  const consent = await (filled === null ? consentFor(call, opened, scopes, hinted) : consentAgain(call, opened))
  const startsWithWallet =
    usesWallet || consent?.status === 'approved' || signsByWallet(opened.pending, { device, shared, filled, hinted })
  const proof = formProof(call, device)
  const passkey = await offerEntry(call)
  const view = {
    ...opened,
    scopes,
    names,
    device,
    shared,
    proof,
    filled,
    fault,
    notice,
    consent,
    passkey,
    startsWithWallet,
  }
  return authorizePage(call, view)
}

/** The accounts for which the accounts signed in on the browser may act. */
async function sharedWith({ ctx }: PageCall, device: Device | null): Promise<SharedAccount[]> {
  const found = await Promise.all(
    (device?.accounts ?? []).map(async (signedIn) => {
      const delegations = await listSharedAccounts(ctx, signedIn.account.did)
      return delegations.map((delegation) => ({ signedIn, delegation }))
    }),
  )
  return found.flat().filter(({ delegation }) => delegation.status === 'active')
}

/** Show the page of a request again to a person who has used its part for wallets. */
export const showWallet = async (call: PageCall, form: URLSearchParams, fault: Fault): Promise<Response> =>
  renderConsent(call, await openedRequest(call, form), { filled: null, fault, usesWallet: true })

interface Meant {
  device: Device | null
  shared: readonly SharedAccount[]
  filled: Filled | null
  /** The account that the app names in `login_hint`, if it is active here. */
  hinted: Account | null
}

/** Whether the account that is ticked, or else the one that the app names, has no password and has to sign in. */
function signsByWallet(pending: OpenRequest, { device, shared, filled, hinted }: Meant): boolean {
  const id = device && (filled?.account ?? preselected(device, shared, pending))
  const ticked =
    device?.known.find(({ account }) => account.did === id) ??
    shared.find(({ delegation }) => delegation.id === id)?.signedIn
  if (ticked) return !ticked.account.hasPassword && mustSignInAgain(ticked, pending)
  return filled === null && hinted !== null && !hinted.hasPassword
}

/**
 * Record the decision and redirect the browser to the app. `enter` throws in the transaction if the password has
 * changed, or the browser was signed out.
 */
async function decided(
  call: PageCall,
  { idHash, pending }: Opened,
  decision: Decision,
  enter?: EnterPage,
): Promise<Response> {
  const { ctx } = call
  const location = await ctx.db.transaction(async (tx) => {
    await enter?.(tx)
    const location = await decideRequest(ctx, tx, idHash, decision)
    if (location !== null && decision.kind === 'approve')
      // Omit the origin of the request: the account holder sees this event, and must not learn where the delegate is.
      await announceIn(tx, decision.delegationId === undefined ? call : { ctx }, 'appLetIn', decision.did, {
        clientId: pending.request.clientId,
      })
    return location
  })
  if (location === null) throw gone()
  return seeOther(location)
}

/** `POST`: the form of the page. */
async function send(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call)
  return sentOnce(call, form, () => decide(call, form))
}

async function decide(call: PageCall, form: URLSearchParams): Promise<Response> {
  const opened = await openedRequest(call, form)
  if (!agrees(form, opened.pending)) throw pageRefusal('The form does not belong to this request.')
  const response = await answered(call, opened, form)
  if (isRedirect(response)) await leave(call, parseDid(form.get(SIGNED_IN_FOR_THIS) ?? ''))
  return response
}

const isRedirect = ({ status }: Response): boolean => status === 303

async function answered(call: PageCall, opened: Opened, form: URLSearchParams): Promise<Response> {
  switch (form.get('action')) {
    case 'deny':
      return decided(call, opened, denial)
    case 'approve':
      return approve(call, opened, form)
    default:
      throw pageRefusal('The form neither allows nor denies access.')
  }
}

/** Sign out an account that was signed in only to choose for whom to act. */
async function leave(call: PageCall, did: Did | null): Promise<void> {
  const device = did && (await deviceOf(call))
  if (device?.accounts.some(({ account }) => account.did === did)) await signOut(call, device, did!)
}

async function approve(call: PageCall, opened: Opened, form: URLSearchParams): Promise<Response> {
  const granted = new Set(form.getAll('granted_scope'))
  const accept = async (account: Account, enter: EnterPage): Promise<Response> => {
    if (!activityOf(account).active)
      return decided(call, opened, { kind: 'refuse', error: 'access_denied', reason: 'The account is not active' })
    // The second step of the sign-in may have been for another account.
    if (shared && account.did !== shared.signedIn.account.did) throw gone()
    if (shared) return approveAsDelegate(call, opened, shared, filled, enter)
    const scopes = narrowedScopes(opened.pending.request.scopes, granted)
    return decided(
      call,
      opened,
      { kind: 'approve', did: account.did, scopes, scopeIsFixed: false, origin: requestOrigin(call) },
      enter,
    )
  }
  const remember = form.get('remember') === 'yes'
  const device = await deviceOf(call)
  const own = chosenAccount(device, form)
  const id = form.get('account')
  const shared = own ? undefined : (await sharedWith(call, device)).find(({ delegation }) => delegation.id === id)
  const chosen = own ?? shared?.signedIn
  const filled = {
    identifier: form.get('identifier') ?? '',
    account: own?.account.did ?? shared?.delegation.id ?? (id === null ? null : 'other'),
    granted,
    remember,
    signedInForThis: parseDid(form.get(SIGNED_IN_FOR_THIS) ?? ''),
  }
  const usesPasskey = passkeyAnswer(form) !== null
  if (chosen && device) {
    if (await faultOf(() => requireFormToken(device, form)))
      return renderConsent(call, opened, { filled, fault: signedInElsewhere })
    if (!usesPasskey && !mustSignInAgain(chosen, opened.pending)) {
      chosen.noteUse()
      return accept(chosen.account, chosen.revalidate)
    }
  }
  const identifier = chosen?.account.did ?? form.get('identifier') ?? ''
  if (!usesPasskey && chosen && !chosen.account.hasPassword)
    return renderConsent(call, opened, { filled, fault: needsWallet })
  const limited = await faultOf(() => charge(call, 'createSession'))
  if (limited) return renderConsent(call, opened, { filled, fault: limited })
  return withPassword(call, form, {
    identifier,
    leavesOrigin: true,
    passkey: { did: chosen?.account.did ?? null },
    again: (fault) => renderConsent(call, opened, { filled, fault }),
    async act(account, enter, passedFactor) {
      if (!chosen && (await sharesOf(call, account))) {
        const wasThere = device?.accounts.some((signedIn) => signedIn.account.did === account.did) ?? false
        await signIn(call, account.did, { remember, passedFactor, enter })
        const signedInForThis = remember || wasThere ? null : account.did
        return renderConsent(call, opened, {
          filled: { ...filled, account: account.did, signedInForThis },
          fault: null,
          notice: texts.chooseWho,
        })
      }
      const response = await accept(account, enter)
      if (remember && activityOf(account).active)
        await signIn(call, account.did, { remember: true, passedFactor, enter })
      return response
    },
  })
}

/**
 * Whether the account may act for others. A person who has just signed in with such an account is asked for whom to
 * act.
 */
const sharesOf = async ({ ctx }: PageCall, account: Account): Promise<boolean> =>
  activityOf(account).active && (await listSharedAccounts(ctx, account.did)).some(({ status }) => status === 'active')

/**
 * Let the app act for a shared account, within the scopes that the app asks for and those of the delegation. The
 * delegation is checked again when the app gets its tokens.
 */
async function approveAsDelegate(
  call: PageCall,
  opened: Opened,
  { delegation }: SharedAccount,
  filled: Filled,
  enter: EnterPage,
): Promise<Response> {
  const { request } = opened.pending
  const asked = narrowedScopes(request.scopes, filled.granted)
  const within = await expandedWithin(call.ctx, request.clientId, asked, delegation.scope)
  if (!within.ok) return decided(call, opened, { kind: 'refuse', error: 'invalid_scope', reason: within.reason })
  const { scopes } = within
  const account = accountName(delegation)
  if (asked.length > 1 && scopes.every((scope) => scope === BASE_SCOPE))
    return renderConsent(call, opened, { filled, fault: faultAt(null, texts.nothingShared({ account }), 200) })
  const origin = { ...requestOrigin(call), openedFrom: null }
  const decision = { kind: 'approve', did: delegation.did, scopes, scopeIsFixed: true, origin } as const
  return decided(call, opened, { ...decision, delegationId: delegation.id }, enter)
}

const needsWallet = faultAt(
  null,
  'This account has no password. Approve it in your wallet, or sign in to your account page first.',
  200,
)

/**
 * Whether the form agrees with the stored request. The form may repeat values of the request, but cannot change them.
 */
function agrees(form: URLSearchParams, { request }: PendingRequest): boolean {
  const expected: Record<string, string> = {
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge,
    code_challenge_method: 'S256',
    state: request.state ?? '',
    scope: request.scopes.join(' '),
    response_type: 'code',
    response_mode: request.responseMode,
  }
  return Object.entries(expected).every(([name, value]) => form.getAll(name).every((given) => given === value))
}

export const authorizeRoutes = [
  route('GET', '/oauth/authorize', { handler: show }),
  route('POST', '/oauth/authorize', { handler: send }),
]
