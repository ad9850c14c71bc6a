/** How a client proves who it is: not at all, or with an assertion signed by a key that it publishes. Source: RFC 7523. */
import { createPublicKey, type KeyObject, type webcrypto } from 'node:crypto'
import { errors, jwtVerify, type JWTPayload } from 'jose'
import type { Context } from '../../platform/context.ts'
import type { ClientMetadata } from '../../protocol/client-metadata.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { thumbprint } from '../../protocol/jwk.ts'
import { decodeJws } from '../../protocol/jws.ts'
import { keyOfClient } from './client-keys.ts'
import { useOnce } from './client-store.ts'
import { clientOf, invalidClient } from './clients.ts'
import { invalidOAuthRequest, required, type Parameters } from './parameters.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const MAX_AGE_SECS = 60
const LEEWAY_SECS = 30
/** How long an assertion without an end is remembered: its age and a tenth more. */
const MEMORY_SECS = 66

/** The key that a confidential client authenticated with first. Its sessions stay bound to it. */
export interface ClientKey {
  kid: string
  alg: string
  jkt: string
}

export interface AuthenticatedClient {
  client: ClientMetadata
  /** Null for a public client. */
  key: ClientKey | null
  /** To be used up when nothing can make the client send the same assertion again. */
  assertion: { id: string; expiresAt: Millis } | null
}

/** The client that sends these parameters, or a refusal. `mayFetch`: also one that was never seen here. */
export async function authenticateClient(
  ctx: Context,
  parameters: Parameters,
  { mayFetch }: { mayFetch: boolean },
): Promise<AuthenticatedClient> {
  const client = await clientOf(ctx, required(parameters, 'client_id'), { mayFetch })
  const { client_assertion: assertion, client_assertion_type: type } = parameters
  if (parameters.client_secret !== undefined) throw invalidClient('client secrets are not supported')
  if (client.authentication.method === 'none') {
    if (assertion !== undefined || type !== undefined) throw invalidClient('the client is public and must not send an assertion')
    return { client, key: null, assertion: null }
  }
  if (assertion === undefined || type !== ASSERTION_TYPE)
    throw invalidClient(`the client must authenticate with client_assertion_type ${ASSERTION_TYPE}`)
  return verifyAssertion(ctx, client, client.authentication.alg, assertion)
}

async function verifyAssertion(ctx: Context, client: ClientMetadata, alg: string, text: string): Promise<AuthenticatedClient> {
  const kid = decodeJws(text)?.header.kid
  if (typeof kid !== 'string') throw invalidClient('the assertion must name its key by kid')
  const jwk = await keyOfClient(ctx, client, kid)
  const jkt = jwk && thumbprint(jwk)
  if (jwk === null || jkt === null) throw invalidClient('the client publishes no key of that kid')
  const { iat, exp, jti, aud, iss, sub } = await verifiedClaims(ctx, text, jwk, alg)
  const nowSecs = ctx.clock.now() / 1000
  const { publicUrl } = ctx.config
  const audiences = [aud ?? []].flat()
  if (iss !== client.clientId || sub !== client.clientId) throw invalidClient('iss and sub of the assertion must be the client id')
  if (!audiences.includes(publicUrl) && !audiences.includes(`${publicUrl}/oauth/token`))
    throw invalidClient('aud of the assertion must be this issuer')
  if (iat === undefined || iat < nowSecs - MAX_AGE_SECS || iat > nowSecs + LEEWAY_SECS)
    throw invalidClient('iat of the assertion must be of this minute')
  if (typeof jti !== 'string' || jti === '') throw invalidClient('the assertion must have a jti')
  // It cannot be used later than this whatever its own end is.
  const expiresAt = Math.ceil(Math.min(exp ?? Infinity, iat + LEEWAY_SECS + MEMORY_SECS) * 1000)
  return { client, key: { kid, alg, jkt }, assertion: { id: `${client.clientId} ${jti}`, expiresAt } }
}

async function verifiedClaims(ctx: Context, text: string, jwk: Record<string, unknown>, alg: string): Promise<JWTPayload> {
  const key = publicKeyOf(jwk)
  try {
    const { payload } = await jwtVerify(text, key, { algorithms: [alg], currentDate: new Date(ctx.clock.now()) })
    return payload
  } catch (error) {
    // A key that does not fit the algorithm is a `TypeError`.
    if (error instanceof errors.JOSEError || error instanceof TypeError) throw invalidClient('the assertion does not verify')
    throw error
  }
}

/** What else the client says about its key does not matter here. */
function publicKeyOf(jwk: Record<string, unknown>): KeyObject {
  try {
    return createPublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' })
  } catch {
    throw invalidClient('the key of that kid cannot be used')
  }
}

/** What is left to check when the proof is known, and the end of the assertion's use. */
export async function spendAssertion(ctx: Context, { key, assertion }: AuthenticatedClient, proofJkt: string | null): Promise<void> {
  if (key !== null && key.jkt === proofJkt) throw invalidOAuthRequest('the key of the assertion must not be the key of the DPoP proof')
  if (assertion !== null && !(await useOnce(ctx.db, 'assertion', assertion.id, assertion.expiresAt)))
    throw invalidClient('the assertion was used before')
}

/** Whether the client still publishes the key that a session is bound to. */
export async function isKeyPublished(ctx: Context, client: ClientMetadata, key: ClientKey): Promise<boolean> {
  const jwk = await keyOfClient(ctx, client, key.kid)
  return jwk !== null && thumbprint(jwk) === key.jkt
}
