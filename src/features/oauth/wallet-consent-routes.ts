/** What wallets and waiting pages call while a request is decided in a wallet. */
import { BoundedCache } from '../../base/bounded-cache.ts'
import { route, type RouteCall } from '../../http/endpoint.ts'
import { invalidRequest } from '../../http/errors.ts'
import { plainName } from '../../http/html.ts'
import { readJson } from '../../http/json-input.ts'
import { perContext } from '../../platform/context.ts'
import { readOwnForm, seeOther, type PageCall } from '../web/web.ts'
import type { Consent } from './wallet-consent-store.ts'
import { parseRequestId, previewedConsent, shownStatus } from './wallet-consents.ts'
import { completeByWallet, decideByWallet, decisionSchema, noSuchConsent } from './wallet-decisions.ts'

const MAX_DECISION_BYTES = 32 * 1024
const POLL_MILLIS = 2000
const MAX_POLLED = 20_000

/** When each id was last polled, on the monotonic clock. One that was forgotten may be polled at once. */
const polls = perContext(() => new BoundedCache<number>(MAX_POLLED))

/** Tell a page that waits how its request stands, at most once in two seconds. */
async function poll({ ctx, url, replyHeaders }: RouteCall<null>): Promise<Response | { status: string }> {
  replyHeaders.set('Cache-Control', 'no-store')
  const requestId = parseRequestId(onlyParameter(url, ['request_id']).value)
  if (requestId === null) return { status: 'expired' }
  const last = polls(ctx).get(requestId)
  const now = ctx.clock.monotonic()
  if (last !== undefined && now - last < POLL_MILLIS)
    return Response.json({ status: 'slow_down' }, { status: 429, headers: { 'Retry-After': String(POLL_MILLIS / 1000) } })
  polls(ctx).set(requestId, now)
  return { status: await shownStatus(ctx, requestId) }
}

/** Returns the one parameter among `names`. Throws `InvalidRequest` if there is none, or more than one. */
function onlyParameter({ searchParams }: URL, names: readonly string[]): { name: string; value: string } {
  const given = [...searchParams].filter(([name]) => names.includes(name))
  const [first] = given
  if (first === undefined || given.length > 1) throw invalidRequest(`Exactly one of ${names.join(' and ')} is required`)
  return { name: first[0], value: first[1] }
}

async function preview({ ctx, url, replyHeaders }: RouteCall<null>): Promise<object> {
  replyHeaders.set('Cache-Control', 'no-store')
  const { name, value } = onlyParameter(url, ['user_code', 'request_id'])
  const consent = await previewedConsent(ctx, name === 'user_code' ? { userCode: value } : { requestId: value })
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

/** The form of the page, which needs no script and no cookie: whoever has the id of an approved request may complete it. */
async function complete(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call, { needsNoCookie: true })
  return seeOther(await completeByWallet(call, form.get('request_id') ?? ''))
}

export const walletConsentRoutes = [
  route('GET', '/oauth/authorize/status', { capability: 'walletConsent', handler: poll }),
  route('GET', '/oauth/authorize/consent-request', { capability: 'walletConsent', limit: 'oauthConsentAction', handler: preview }),
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
