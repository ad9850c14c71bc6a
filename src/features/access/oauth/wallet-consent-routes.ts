/** The endpoints that wallets and waiting pages call while a request is decided in a wallet. */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { route, type RouteCall } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import { readJson } from '../../../http/json-input.ts'
import { charge } from '../../../http/limiting.ts'
import { perContext } from '../../../platform/context.ts'
import { faultAt, seeOther, type PageCall } from '../page-parts/page-parts.ts'
import { readOwnForm } from '../pages/pages.ts'
import { showWallet } from './authorize-routes.ts'
import type { Consent } from './wallet-consent-store.ts'
import { parseRequestId, pendingConsent, pendingConsentByCode, shownStatus } from './wallet-consents.ts'
import { completeByWallet, decideByWallet, decisionSchema, noSuchConsent, unfinished } from './wallet-decisions.ts'

const MAX_DECISION_BYTES = 32 * 1024
const POLL_MILLIS = 2000
const MAX_POLLED = 20_000

interface Polled {
  /** On the monotonic clock. */
  at: number
  /** Whether a request of this id exists. */
  isKnown: boolean
}

/** The last poll of each id. If it was forgotten, the id may be polled at once. */
const polls = perContext(() => new BoundedCache<Polled>(MAX_POLLED))

/**
 * Report the state of a request to the page that waits for it, at most every two seconds. The limit of an address
 * counts each page once, because many people behind one address may be waiting. But it counts every poll that comes too
 * soon, or that is for an unknown request.
 */
async function poll(call: RouteCall<null>): Promise<Response | { status: string }> {
  const { ctx, url, replyHeaders } = call
  replyHeaders.set('Cache-Control', 'no-store')
  const [id = '', ...others] = url.searchParams.getAll('request_id')
  const last = others.length === 0 ? polls(ctx).get(id) : undefined
  const at = ctx.clock.monotonic()
  const isTooSoon = last !== undefined && at - last.at < POLL_MILLIS
  if (isTooSoon || !last?.isKnown) await charge(call, 'globalIp')
  if (isTooSoon)
    return Response.json(
      { status: 'slow_down' },
      { status: 429, headers: { 'Retry-After': String(POLL_MILLIS / 1000) } },
    )
  const requestId = parseRequestId(onlyParameter(url, ['request_id'])[1])
  if (requestId === null) return { status: 'expired' }
  // Note the poll before the database is asked, so that only one of several simultaneous polls is answered.
  polls(ctx).set(requestId, { at, isKnown: last?.isKnown ?? false })
  const status = await shownStatus(ctx, requestId)
  polls(ctx).set(requestId, { at, isKnown: status !== 'expired' })
  return { status }
}

/** Returns the one parameter among `names`. Throws `InvalidRequest` if there is none, or more than one. */
function onlyParameter<Name extends string>(
  { searchParams }: URL,
  names: readonly Name[],
): [name: Name, value: string] {
  const given = names.flatMap((name) => searchParams.getAll(name).map((value): [Name, string] => [name, value]))
  if (given.length !== 1) throw invalidRequest(`Exactly one of ${names.join(' and ')} is required`)
  return given[0]!
}

/** How a wallet names a request: by the code that a person typed, or by the id that it scanned. */
const finders = { user_code: pendingConsentByCode, request_id: pendingConsent }

async function preview({ ctx, url, replyHeaders }: RouteCall<null>): Promise<object> {
  replyHeaders.set('Cache-Control', 'no-store')
  const [name, value] = onlyParameter(url, ['user_code', 'request_id'])
  const consent = await finders[name](ctx, value)
  if (consent === null) throw noSuchConsent()
  return shown(consent)
}

/** What a wallet shows before a person decides. The match code is not part of it: only the page shows it. */
const shown = ({ requestId, pushed, webOrigin, ip, requestedScopes, loginHint, matchCode }: Consent) => ({
  requestId,
  clientId: pushed.client.clientId,
  clientName: pushed.client.name === null ? pushed.client.clientId : plainName(pushed.client.name),
  redirectUri: pushed.request.redirectUri,
  origin: webOrigin,
  ip: ip === 'unknown' ? null : ip,
  requestedScope: requestedScopes,
  loginHint,
  matchRequired: matchCode !== null,
})

/**
 * Handles the form of the page, which needs neither script nor cookie: the id of an approved request is enough to
 * complete it. A form that is sent before the wallet has decided leads back to the page.
 */
async function complete(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call, { needsNoCookie: true })
  const requestId = form.get('request_id') ?? ''
  const isTooEarly = form.has('request_uri') && (await shownStatus(call.ctx, requestId)) === 'pending'
  return isTooEarly
    ? showWallet(call, form, faultAt(null, unfinished.pending))
    : seeOther(await completeByWallet(call, requestId))
}

export const walletConsentRoutes = [
  route('GET', '/oauth/authorize/status', { capability: 'walletConsent', unlimited: true, handler: poll }),
  route('GET', '/oauth/authorize/consent-request', {
    capability: 'walletConsent',
    limit: 'oauthConsentAction',
    handler: preview,
  }),
  route('POST', '/oauth/authorize/approve', {
    capability: 'walletConsent',
    limit: 'oauthConsentAction',
    async handler(call) {
      call.replyHeaders.set('Cache-Control', 'no-store')
      return decideByWallet(call, await readJson(call.body, decisionSchema, MAX_DECISION_BYTES))
    },
  }),
  route('POST', '/oauth/authorize/complete', { capability: 'walletConsent', handler: complete }),
]
