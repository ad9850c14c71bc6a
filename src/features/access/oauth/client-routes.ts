/**
 * The endpoints that clients post to: pushed authorization requests (RFC 9126), tokens (RFC 6749) and revocation (RFC
 * 7009).
 */
import { route, type RouteCall } from '../../../http/endpoint.ts'
import { OAuthError } from '../../../http/errors.ts'
import { addedGrants } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import { checkAuthorizationRequest } from '../../../protocol/authorization-request.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { pushRequest } from './authorization-requests.ts'
import { authenticateClient, spendAssertion } from './client-authentication.ts'
import { findAuthorizationCode, takeAuthorizationCode } from './authorization-code-store.ts'
import { redeemAuthorizationCode, refreshTokens, type Requester } from './grants.ts'
import { readParameters, required, type OAuthParameters } from '../../../http/oauth-parameters.ts'
import { expanded } from './permission-sets.ts'
import { inOwnSpelling, sessionIdOf } from './oauth-refresh-tokens.ts'
import { deleteOAuthSession, findOAuthSession, oauthSessionOfCode } from './oauth-session-store.ts'
import { offerNonce, readOAuthAccessToken, useProof } from '../tokens/tokens.ts'

type Call = RouteCall<null>

/** Set the headers of every response of these endpoints, refusals included. RFC 6749, 5.1; RFC 9449, 8.2. */
async function prepareReply(call: Call): Promise<void> {
  call.replyHeaders.set('Cache-Control', 'no-store')
  call.replyHeaders.set('Pragma', 'no-cache')
  await offerNonce(call)
}

/**
 * Returns the thumbprint of the proof's key. Throws `invalid_dpop_proof` or `use_dpop_nonce` if the proof is refused or
 * missing.
 */
async function proofKey(call: Call): Promise<string> {
  const proof = await useProof(call, null)
  if (!proof.ok) throw new OAuthError(400, proof.error, proof.reason)
  return proof.jkt
}

// Pushed authorization requests

/**
 * Check and store an authorization request. Throws the errors of RFC 6749, 4.1.2.1 and 5.2, and those of DPoP.
 *
 * Source: RFC 9126, section 2; RFC 9449, 10.1 for the optional proof.
 */
async function push(call: Call): Promise<Response> {
  await prepareReply(call)
  const { ctx, request, body } = call
  const parameters = await readParameters(body)
  const requester = await authenticateClient(ctx, parameters, { mayFetch: true })
  // The proof is optional here. Without it, and without `dpop_jkt`, the session is bound to the key that redeems the
  // code.
  const jkt = request.headers.has('dpop') ? await proofKey(call) : null
  await spendAssertion(ctx, requester, jkt)
  const { client, key: clientKey } = requester
  const checked = checkAuthorizationRequest(parameters, client, jkt, { spaces: ctx.config.spaces.enabled })
  if (!checked.ok) throw new OAuthError(400, checked.error, checked.reason)
  const expansion = await expanded(ctx, client.clientId, checked.request.scopes)
  if (!expansion.ok) throw new OAuthError(400, 'invalid_scope', expansion.reason)
  return Response.json(await pushRequest(ctx, { request: checked.request, client, clientKey }), { status: 201 })
}

// Tokens

/**
 * Handlers of the grants of apps, by `grant_type`. Each one authenticates the client and checks the DPoP proof itself.
 */
const grants: Readonly<Record<string, (call: Call, parameters: OAuthParameters) => Promise<object>>> = {
  async authorization_code(call, parameters) {
    return redeemAuthorizationCode(call.ctx, await requesterOf(call, parameters), parameters)
  },
  async refresh_token(call, parameters) {
    const requester = await requesterOf(call, parameters)
    if (!requester.client.mayRefresh)
      throw new OAuthError(400, 'unauthorized_client', 'the client does not list this grant')
    return refreshTokens(call.ctx, requester, parameters)
  },
}

/** Token endpoint. Throws `unsupported_grant_type`, and the errors of the grant. RFC 6749, 3.2; RFC 9449, section 5. */
async function token(call: Call): Promise<object> {
  await prepareReply(call)
  const parameters = await readParameters(call.body)
  const name = required(parameters, 'grant_type')
  const offered = { ...grants, ...addedGrants(call.ctx) }
  const exchange = Object.hasOwn(offered, name) ? offered[name] : undefined
  if (!exchange) throw new OAuthError(400, 'unsupported_grant_type', 'the grant_type is not supported')
  return exchange(call, parameters)
}

/**
 * Authenticate the client, check the proof, and only then spend the assertion: a client that is asked for a nonce sends
 * the same assertion again.
 */
async function requesterOf(call: Call, parameters: OAuthParameters): Promise<Requester> {
  const authenticated = await authenticateClient(call.ctx, parameters, { mayFetch: false })
  const jkt = await proofKey(call)
  await spendAssertion(call.ctx, authenticated, jkt)
  return { ...authenticated, jkt }
}

// Revocation

/**
 * Revoke a token: end its session, or delete its code. Succeeds without effect if the token is unknown, or if it
 * belongs to another client or DPoP key, so that the response reveals nothing.
 *
 * Source: RFC 7009, sections 2.1 and 2.2.
 */
async function revoke(call: Call): Promise<object> {
  await prepareReply(call)
  const parameters = await readParameters(call.body)
  const text = inOwnSpelling(required(parameters, 'token'))
  const { client, jkt } = await requesterOf(call, parameters)
  const { db, clock } = call.ctx
  const sessionId = await sessionOfToken(call.ctx, text)
  await db.transaction(async (tx) => {
    const session = sessionId === null ? null : await findOAuthSession(tx, sessionId)
    if (session?.clientId === client.clientId && session.jkt === jkt) await deleteOAuthSession(tx, session.id)
    const codeHash = opaqueTokenHash(text)
    const code = codeHash && (await findAuthorizationCode(tx, codeHash, clock.now()))
    if (code && code.request.clientId === client.clientId && (code.request.dpopJkt ?? jkt) === jkt)
      await takeAuthorizationCode(tx, codeHash, clock.now())
  })
  return {}
}

/**
 * Returns the id of the session that a code, a refresh token or an access token belongs to, even if the token has
 * expired; null if the text is none of them. The session need not exist.
 */
async function sessionOfToken(ctx: Context, text: string): Promise<string | null> {
  const codeHash = opaqueTokenHash(text)
  if (codeHash !== null) return (await oauthSessionOfCode(ctx.db, codeHash))?.id ?? sessionIdOf(text)
  const { sid } = (await readOAuthAccessToken(ctx, text)).token?.claims ?? {}
  return typeof sid === 'string' ? sid : null
}

/** The response to other methods. RFC 9126, 2.3. */
const onlyPost = () => {
  throw new OAuthError(405, 'invalid_request', 'Method Not Allowed', { Allow: 'POST' })
}

export const clientRoutes = [
  route('POST', '/oauth/par', { limit: 'pushRequest', handler: push }),
  ...(['GET', 'PUT', 'DELETE'] as const).map((method) => route(method, '/oauth/par', { handler: onlyPost })),
  route('POST', '/oauth/token', { handler: token }),
  route('POST', '/oauth/revoke', { handler: revoke }),
]
