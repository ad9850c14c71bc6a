/** The endpoints that clients post to: pushed requests, tokens, revocation. */
import { route, type RouteCall } from '../../http/endpoint.ts'
import { OAuthError } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { checkAuthorizationRequest } from '../../protocol/authorization-request.ts'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import { isInclude } from '../../protocol/scopes.ts'
import { readOAuthAccessToken } from './oauth-access-tokens.ts'
import { pushRequest } from './authorization-requests.ts'
import { authenticateClient, spendAssertion } from './client-authentication.ts'
import { findAuthorizationCode, takeAuthorizationCode } from './authorization-code-store.ts'
import { redeemAuthorizationCode, refreshTokens, type Requester } from './grants.ts'
import { readParameters, required, type Parameters } from './parameters.ts'
import { expanded } from './permission-sets.ts'
import { offerNonce, useProof } from './proofs.ts'
import { sessionIdOf } from './oauth-refresh-tokens.ts'
import { deleteOAuthSession, findOAuthSession, oauthSessionOfCode } from './oauth-session-store.ts'

type Call = RouteCall<null>

/** What every answer of these endpoints carries, refusals included. */
async function prepareReply(call: Call): Promise<void> {
  call.replyHeaders.set('Cache-Control', 'no-store')
  call.replyHeaders.set('Pragma', 'no-cache')
  await offerNonce(call)
}

/** The key of the request's proof. Refuses a bad one, and a missing one. */
async function proofKey(call: Call): Promise<string> {
  const proof = await useProof(call, null)
  if (!proof.ok) throw new OAuthError(400, proof.error, proof.reason)
  return proof.jkt
}

// Pushed requests

async function push(call: Call): Promise<Response> {
  await prepareReply(call)
  const { ctx, request, body } = call
  const parameters = await readParameters(body)
  const requester = await authenticateClient(ctx, parameters, { mayFetch: true })
  // Optional here: without it the code is bound to the key that redeems it.
  const jkt = request.headers.has('dpop') ? await proofKey(call) : null
  await spendAssertion(ctx, requester, jkt)
  const { client, key: clientKey } = requester
  const checked = checkAuthorizationRequest(parameters, client, jkt)
  if (!checked.ok) throw new OAuthError(400, checked.error, checked.reason)
  if (checked.request.scopes.some(isInclude)) {
    const expansion = await expanded(ctx, checked.request.scopes)
    if (!expansion.ok) throw new OAuthError(400, 'invalid_scope', expansion.reason)
  }
  return Response.json(await pushRequest(ctx, { request: checked.request, client, clientKey }), { status: 201 })
}

// Tokens

/** Grants by `grant_type`. Each asks by itself for the client and for the proof that it needs. */
const grants: Readonly<Record<string, (call: Call, parameters: Parameters) => Promise<object>>> = {
  async authorization_code(call, parameters) {
    return redeemAuthorizationCode(call.ctx, await requesterOf(call, parameters), parameters)
  },
  async refresh_token(call, parameters) {
    const requester = await requesterOf(call, parameters)
    if (!requester.client.mayRefresh) throw new OAuthError(400, 'unauthorized_client', 'the client does not list this grant')
    return refreshTokens(call.ctx, requester, parameters)
  },
}

async function token(call: Call): Promise<object> {
  await prepareReply(call)
  const parameters = await readParameters(call.body)
  const name = required(parameters, 'grant_type')
  const exchange = Object.hasOwn(grants, name) ? grants[name] : undefined
  if (!exchange) throw new OAuthError(400, 'unsupported_grant_type', 'the grant_type is not supported')
  return exchange(call, parameters)
}

async function requesterOf(call: Call, parameters: Parameters): Promise<Requester> {
  const authenticated = await authenticateClient(call.ctx, parameters, { mayFetch: false })
  const jkt = await proofKey(call)
  await spendAssertion(call.ctx, authenticated, jkt)
  return { ...authenticated, jkt }
}

// Revocation

/** Source: RFC 7009. What is not there, or not the client's, is answered like what was revoked. */
async function revoke(call: Call): Promise<object> {
  await prepareReply(call)
  const parameters = await readParameters(call.body)
  const text = required(parameters, 'token')
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

/** The session of a refresh token, an access token (also of one that has expired), or a code. */
async function sessionOfToken(ctx: Context, text: string): Promise<string | null> {
  const codeHash = opaqueTokenHash(text)
  if (codeHash !== null) return (await oauthSessionOfCode(ctx.db, codeHash))?.id ?? sessionIdOf(text)
  const { sid } = (await readOAuthAccessToken(ctx, text)).token?.claims ?? {}
  return typeof sid === 'string' ? sid : null
}

const onlyPost = () => {
  throw new OAuthError(405, 'invalid_request', 'Method Not Allowed', { Allow: 'POST' })
}

export const tokenRoutes = [
  route('POST', '/oauth/par', { handler: push }),
  route('GET', '/oauth/par', { handler: onlyPost }),
  route('PUT', '/oauth/par', { handler: onlyPost }),
  route('DELETE', '/oauth/par', { handler: onlyPost }),
  route('POST', '/oauth/token', { handler: token }),
  route('POST', '/oauth/revoke', { handler: revoke }),
]
