/** The documents that clients read first: the protected resource, the authorization server and its public keys. */
import { languages } from '../../../protocol/languages.ts'
import { HOUR_SECS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import { askedUrl } from '../../../platform/configuration/service-names.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { ASSERTION_REVOKED, CLAIM_GRANT, ID_JAG, JWT_BEARER_GRANT } from '../../../protocol/agent-names.ts'
import { assertionAlgorithms } from '../../../protocol/client-metadata.ts'
import { dpopAlgorithms } from '../../../protocol/dpop.ts'
import { serverKey } from '../tokens/tokens.ts'

const scopes = ['atproto', 'transition:email', 'transition:generic', 'transition:chat.bsky']
const authenticationMethods = ['none', 'private_key_jwt']
const METADATA_MAX_AGE_SECS = 300
const JWKS_MAX_AGE_SECS = HOUR_SECS

const cached = (document: object, maxAgeSecs: number, audience = '') =>
  Response.json(document, { headers: { 'Cache-Control': `${audience}max-age=${maxAgeSecs}` } })

/** `resource` is the URL by which the client knows the resource. Source: RFC 9728, section 2. */
const protectedResource = ({ publicUrl, serviceName }: Config, resource: string) => ({
  resource,
  resource_name: serviceName,
  authorization_servers: [publicUrl],
  scopes_supported: scopes,
  bearer_methods_supported: ['header'],
  resource_documentation: 'https://atproto.com',
})

/**
 * Source: RFC 8414, section 2; RFC 9126, section 5; RFC 9207, section 3; RFC 9449, 5.1; RFC 9728, section 4; OAuth
 * Client ID Metadata Document.
 */
const authorizationServer = ({ config, capabilities }: Context) => ({
  issuer: config.publicUrl,
  authorization_endpoint: `${config.publicUrl}/oauth/authorize`,
  token_endpoint: `${config.publicUrl}/oauth/token`,
  revocation_endpoint: `${config.publicUrl}/oauth/revoke`,
  pushed_authorization_request_endpoint: `${config.publicUrl}/oauth/par`,
  jwks_uri: `${config.publicUrl}/oauth/jwks`,
  scopes_supported: scopes,
  subject_types_supported: ['public'],
  response_types_supported: ['code'],
  response_modes_supported: ['query', 'fragment'],
  grant_types_supported: [
    'authorization_code',
    'refresh_token',
    ...(capabilities.has('agents') ? [JWT_BEARER_GRANT, CLAIM_GRANT] : []),
  ],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: authenticationMethods,
  token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  revocation_endpoint_auth_methods_supported: authenticationMethods,
  revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  dpop_signing_alg_values_supported: dpopAlgorithms,
  // Every value is given explicitly, because the specifications have different defaults.
  require_pushed_authorization_requests: true,
  request_parameter_supported: false,
  request_uri_parameter_supported: true,
  require_request_uri_registration: true,
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: true,
  // Some libraries send no value that is not listed here.
  prompt_values_supported: ['login', 'consent', 'create'],
  ui_locales_supported: languages,
  display_values_supported: ['page', 'popup', 'touch'],
  protected_resources: [config.publicUrl, ...config.formerUrls],
  ...(capabilities.has('agents') && { agent_auth: agentAuth(config) }),
})

/** How programs that act for an account can register: the ways that are enabled. */
const agentAuth = ({ publicUrl, agentAuth: { anonymousEnabled, serviceAuthEnabled, trustedIssuers } }: Config) => ({
  skill: `${publicUrl}/auth.md`,
  identity_endpoint: `${publicUrl}/agent/identity`,
  claim_endpoint: `${publicUrl}/agent/identity/claim`,
  events_endpoint: `${publicUrl}/agent/event/notify`,
  identity_types_supported: [
    ...(anonymousEnabled ? ['anonymous'] : []),
    ...(trustedIssuers.length > 0 ? ['identity_assertion'] : []),
    ...(serviceAuthEnabled ? ['service_auth'] : []),
  ],
  identity_assertion: { assertion_types_supported: [ID_JAG] },
  events_supported: [ASSERTION_REVOKED],
})

export const metadataRoutes = [
  route('GET', '/.well-known/oauth-protected-resource', {
    handler: ({ ctx, request }) =>
      cached(protectedResource(ctx.config, askedUrl(ctx.config, request)), METADATA_MAX_AGE_SECS),
  }),
  route('GET', '/.well-known/oauth-authorization-server', {
    handler: ({ ctx }) => cached(authorizationServer(ctx), METADATA_MAX_AGE_SECS),
  }),
  route('GET', '/oauth/jwks', {
    async handler({ ctx }) {
      const { jwk, kid } = await serverKey(ctx)
      return cached({ keys: [{ ...jwk, kid, use: 'sig', alg: 'ES256' }] }, JWKS_MAX_AGE_SECS, 'public, ')
    },
  }),
]
