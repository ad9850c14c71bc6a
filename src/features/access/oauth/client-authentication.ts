/**
 * Client authentication. A public client does not authenticate; a confidential client sends an assertion signed by a
 * key that it publishes.
 *
 * Source: RFC 7523, sections 2.2 and 3.
 */
import { createHash, createPublicKey, type KeyObject, type webcrypto } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { isOwnOrigin } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import type { ClientMetadata } from '../../../protocol/client-metadata.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { thumbprint } from '../../../protocol/jwk.ts'
import { decodeJws } from '../../../protocol/jws.ts'
import { keyOfClient, type ClientKey } from './client-keys.ts'
import { clientOf, invalidClient } from './clients.ts'
import { invalidOAuthRequest, required, type OAuthParameters } from '../../../http/oauth-parameters.ts'
import { useOnce } from '../tokens/tokens.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const MAX_AGE_SECS = 60
const LEEWAY_SECS = 30
/** How long a used assertion without `exp` is remembered: its maximum age plus a tenth. The leeway is added to that. */
const MEMORY_SECS = 66

export interface AuthenticatedClient {
  client: ClientMetadata
  /** Null for a public client. */
  key: ClientKey | null
  /**
   * Null for a public client. Spend it only after the DPoP proof is accepted: a client that is sent a new nonce may
   * repeat the request with the same assertion.
   */
  assertion: { id: string; expiresAt: Millis } | null
}

/**
 * Authenticate the client that sends these parameters. `mayFetch`: whether to fetch the metadata of a client that is
 * not stored here, instead of refusing the client. The caller must call `spendAssertion` afterwards.
 *
 * Throws `invalid_request` if `client_id` is missing, `invalid_client` if the metadata or the assertion is refused, and
 * `LookupsFull` when too many names are being looked up.
 *
 * Source: RFC 7523, section 3; RFC 6749, 5.2 for the errors.
 */
export async function authenticateClient(
  ctx: Context,
  parameters: OAuthParameters,
  { mayFetch }: { mayFetch: boolean },
): Promise<AuthenticatedClient> {
  const client = await clientOf(ctx, required(parameters, 'client_id'), { mayFetch })
  const { client_assertion: assertion, client_assertion_type: type } = parameters
  if (parameters.client_secret !== undefined) throw invalidClient('client secrets are not supported')
  if (client.authentication.method === 'none') {
    if (assertion !== undefined || type !== undefined)
      throw invalidClient('the client is public and must not send an assertion')
    return { client, key: null, assertion: null }
  }
  if (assertion === undefined || type !== ASSERTION_TYPE)
    throw invalidClient(`the client must authenticate with client_assertion_type ${ASSERTION_TYPE}`)
  return verifyAssertion(ctx, client, client.authentication.alg, assertion)
}

async function verifyAssertion(
  ctx: Context,
  client: ClientMetadata,
  alg: string,
  text: string,
): Promise<AuthenticatedClient> {
  const kid = decodeJws(text)?.header.kid
  if (typeof kid !== 'string') throw invalidClient('the header of the assertion must contain kid')
  const jwk = await keyOfClient(ctx, client, kid)
  const jkt = jwk && thumbprint(jwk)
  if (jwk === null || jkt === null) throw invalidClient('the client publishes no key with this kid')
  const { iat, exp, jti, aud, iss, sub } = await verifiedClaims(ctx, text, jwk, alg)
  const nowSecs = ctx.clock.now() / 1000
  const isForUs = (audience: unknown) =>
    typeof audience === 'string' && isOwnOrigin(ctx.config, audience.replace(/\/oauth\/token$/, ''))
  if (iss !== client.clientId || sub !== client.clientId)
    throw invalidClient('iss and sub of the assertion must be the client id')
  if (![aud].flat().some(isForUs)) throw invalidClient('aud of the assertion must be this issuer')
  if (iat === undefined || iat < nowSecs - MAX_AGE_SECS || iat > nowSecs + LEEWAY_SECS)
    throw invalidClient(
      `iat of the assertion must be within the last minute; the time of this server is ${Math.floor(nowSecs)}`,
    )
  if (typeof jti !== 'string' || jti === '') throw invalidClient('the assertion must have a jti')
  // The assertion is refused after this time even if its `exp` is later.
  const expiresAt = Math.ceil(Math.min(exp ?? Infinity, iat + LEEWAY_SECS + MEMORY_SECS) * 1000)
  // A digest, because a `jti` may have any length.
  const id = createHash('sha256').update(`${client.clientId} ${jti}`).digest('base64url')
  return { client, key: { kid, alg, jkt }, assertion: { id, expiresAt } }
}

async function verifiedClaims(
  ctx: Context,
  text: string,
  jwk: Record<string, unknown>,
  alg: string,
): Promise<JWTPayload> {
  const key = publicKeyOf(jwk)
  const { errors, jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(text, key, { algorithms: [alg], currentDate: new Date(ctx.clock.now()) })
    return payload
  } catch (error) {
    if (error instanceof errors.JWTExpired)
      throw invalidClient(`the assertion has expired; the time of this server is ${Math.floor(ctx.clock.now() / 1000)}`)
    // jose throws a `TypeError` if the key does not fit the algorithm.
    if (error instanceof errors.JOSEError || error instanceof TypeError)
      throw invalidClient('the signature or a claim of the assertion is invalid')
    throw error
  }
}

/** Imports the key itself. Other members of the JWK, such as `use` and `key_ops`, are ignored. */
function publicKeyOf(jwk: Record<string, unknown>): KeyObject {
  try {
    return createPublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' })
  } catch {
    throw invalidClient('the key with this kid cannot be used')
  }
}

/**
 * Mark the assertion as used. `proofJkt` is the thumbprint of the DPoP key; null if the request has no proof. Does
 * nothing for a public client.
 *
 * Throws `invalid_request` if the client signs the assertion and the proof with the same key, and `invalid_client` if
 * the assertion was used before. RFC 7523, 3 (7).
 */
export async function spendAssertion(
  ctx: Context,
  { key, assertion }: AuthenticatedClient,
  proofJkt: string | null,
): Promise<void> {
  if (key !== null && key.jkt === proofJkt)
    throw invalidOAuthRequest('the key of the assertion must not be the key of the DPoP proof')
  if (assertion !== null && !(await useOnce(ctx.db, 'assertion', assertion.id, assertion.expiresAt)))
    throw invalidClient('the assertion has already been used')
}

/**
 * Whether the client still publishes the key that a session is bound to. Throws `LookupsFull` as `keyOfClient` does.
 */
export async function isKeyPublished(ctx: Context, client: ClientMetadata, key: ClientKey): Promise<boolean> {
  const jwk = await keyOfClient(ctx, client, key.kid)
  return jwk !== null && thumbprint(jwk) === key.jkt
}
