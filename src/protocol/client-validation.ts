/**
 * Validates metadata of OAuth clients: a document at the client's id, or, during development, the id itself. Imported
 * when the first client asks, because the schema library takes 4 MB.
 *
 * Source: atproto "OAuth", "Clients"; RFC 7591; OAuth Client ID Metadata Document.
 */
import {
  atprotoLoopbackClientMetadata,
  isOAuthClientIdLoopback,
  oauthClientIdDiscoverableSchema,
  oauthClientMetadataSchema,
  oauthRedirectUriSchema,
} from '@atproto/oauth-types'
import {
  assertionAlgorithms,
  type ApplicationType,
  type ClientMetadata,
  type ClientOutcome,
} from './client-metadata.ts'
import { isLoopbackHost, isPublicHost, isUriText } from './redirect-uris.ts'
import { isBoundedScope, MAX_SCOPE_CHARS, MAX_SCOPES } from './scopes.ts'
import { hasLongHost } from './url-host.ts'

/** The client that a loopback id describes. */
export function loopbackClient(clientId: string): ClientOutcome {
  const redirectUris = new URLSearchParams(clientId.slice(clientId.indexOf('?') + 1)).getAll('redirect_uri')
  if (faultOfList(redirectUris) !== null || redirectUris.some(hasLongHost) || !isLoopbackId(clientId))
    return { ok: false, reason: 'not a loopback client id' }
  try {
    return validateClient(clientId, atprotoLoopbackClientMetadata(clientId), null)
  } catch {
    return { ok: false, reason: 'a loopback client id requires the scope atproto' }
  }
}

const isLoopbackId = (clientId: string): boolean => withoutFault(() => isOAuthClientIdLoopback(clientId)) ?? false

/** Returns null if the check throws a `TypeError`, as the schemas do for a text that is not a URL. */
function withoutFault<T>(check: () => T): T | null {
  try {
    return check()
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}

/** Every token of the client and the URL of its consent page contain the id. */
const MAX_CLIENT_ID_CHARS = 2048

/** The URL of a client's metadata document; null if the id is not a valid one. */
export function clientDocumentUrl(clientId: string): URL | null {
  if (
    clientId.length > MAX_CLIENT_ID_CHARS ||
    !clientId.startsWith('https://') ||
    hasLongHost(clientId) ||
    !withoutFault(() => oauthClientIdDiscoverableSchema.safeParse(clientId))?.success
  )
    return null
  const url = new URL(clientId)
  return isFetchable(url) && !isMethod(url) ? url : null
}

/**
 * Whether a URL calls a method of a service, such as `com.atproto.sync.getBlob`. Anyone may have uploaded what the
 * method returns, but users identify an app by its host. Percent escapes are decoded first.
 */
function isMethod({ pathname }: URL): boolean {
  const plain = pathname.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return /^\/+xrpc\//i.test(plain)
}

/** Whether a client may make this server fetch a URL: https, default port, on a public host. */
const isFetchable = ({ protocol, hostname, port, username, password }: URL): boolean =>
  protocol === 'https:' && isPublicHost(hostname) && port === '' && username === '' && password === ''

/** Check the metadata document of a client. Returns the metadata, or why it is refused. */
export function discoverableClient(clientId: string, document: unknown): ClientOutcome {
  const url = clientDocumentUrl(clientId)
  return url === null ? { ok: false, reason: 'not a client id' } : validateClient(clientId, document, url)
}

type Metadata = ReturnType<typeof oauthClientMetadataSchema.parse>

/** Members that a document must not have, because this server does not support what they ask for. */
const foreignFields = [
  'default_max_age',
  'userinfo_signed_response_alg',
  'userinfo_encrypted_response_alg',
  'id_token_signed_response_alg',
  'tls_client_certificate_bound_access_tokens',
  'authorization_encrypted_response_enc',
  'authorization_encrypted_response_alg',
]

/**
 * Longest URI. A longer link is left out; a longer redirect URI is refused, because every request and every code stores
 * one.
 */
const MAX_URI_CHARS = 2048

interface Rule {
  holds(metadata: Metadata, url: URL | null, clientId: string): boolean
  reason: string
}

const unique = (values: readonly string[]): boolean => new Set(values).size === values.length

const rules: readonly Rule[] = [
  {
    reason: 'client_id is not the URL of the document',
    holds: ({ client_id }, _url, clientId) => client_id === clientId,
  },
  { reason: 'response_types must contain code', holds: ({ response_types }) => response_types.includes('code') },
  {
    reason: 'grant_types must contain authorization_code, and may contain refresh_token',
    holds: ({ grant_types }) => isGrantList(grant_types),
  },
  {
    reason: `scope has more than ${MAX_SCOPES} values or ${MAX_SCOPE_CHARS} characters`,
    holds: ({ scope = '' }) => isBoundedScope(scope),
  },
  {
    reason: 'scope must contain atproto, and no value twice',
    holds: ({ scope = '' }) => scope.split(' ').includes('atproto') && unique(scope.split(' ')),
  },
  {
    reason: 'token_endpoint_auth_method must be none or private_key_jwt',
    holds: ({ token_endpoint_auth_method: method }) => method === 'none' || method === 'private_key_jwt',
  },
  {
    reason: 'private_key_jwt requires a supported token_endpoint_auth_signing_alg, and other methods allow none',
    holds: ({ token_endpoint_auth_method: method, token_endpoint_auth_signing_alg: alg }) =>
      method === 'none' ? alg === undefined : (assertionAlgorithms as readonly string[]).includes(alg ?? ''),
  },
  {
    reason: 'private_key_jwt requires either jwks with a key or an https jwks_uri',
    holds: ({ token_endpoint_auth_method: method, jwks, jwks_uri }) =>
      !(jwks && jwks_uri) &&
      (method === 'none' || (jwks?.keys.length ?? 0) > 0 || (jwks_uri !== undefined && isFetchable(new URL(jwks_uri)))),
  },
  {
    reason: 'dpop_bound_access_tokens must be true',
    holds: ({ dpop_bound_access_tokens }) => dpop_bound_access_tokens === true,
  },
  {
    reason: 'a native client cannot keep a key secret: its token_endpoint_auth_method must be none',
    holds: ({ application_type, token_endpoint_auth_method: method }) =>
      application_type === 'web' || method === 'none',
  },
  { reason: 'subject_type must be public', holds: ({ subject_type }) => subject_type === 'public' },
  {
    reason: 'client_uri must be a parent of the client id',
    holds: ({ client_uri }, url) => client_uri === undefined || isParent(client_uri, url),
  },
  {
    reason: `a redirect URI has more than ${MAX_URI_CHARS} characters`,
    holds: ({ redirect_uris }) => redirect_uris.every((uri) => uri.length <= MAX_URI_CHARS),
  },
  {
    reason: 'a redirect URI is not allowed for this client',
    holds: ({ redirect_uris, application_type }, url) =>
      redirect_uris.every((uri) => isRegistrable(uri, application_type, url?.hostname ?? null)),
  },
]

/** The reversed host of a client id: the only private-use scheme that the client may register. */
const reversed = (hostname: string): string => hostname.split('.').reverse().join('.')

/** Whether a client may register `redirectUri`. `clientHost` is the host name of its id, null for a loopback client. */
export function isRegistrable(
  redirectUri: string,
  applicationType: ApplicationType,
  clientHost: string | null,
): boolean {
  const url = URL.parse(redirectUri)
  if (!url || url.username !== '' || url.password !== '' || !oauthRedirectUriSchema.safeParse(redirectUri).success)
    return false
  switch (url.protocol) {
    case 'https:':
      return isPublicHost(url.hostname)
    case 'http:':
      return applicationType === 'native' && isLoopbackHost(url.hostname)
    default:
      return applicationType === 'native' && clientHost !== null && url.protocol === `${reversed(clientHost)}:`
  }
}

function isGrantList(grants: readonly string[]): boolean {
  return (
    unique(grants) &&
    grants.includes('authorization_code') &&
    grants.every((grant) => grant === 'authorization_code' || grant === 'refresh_token')
  )
}

/** Whether `clientUri` has the origin of the client id, and its path or a parent of it. */
function isParent(clientUri: string, url: URL | null): boolean {
  const parent = URL.parse(clientUri)
  if (!parent || !url || parent.origin !== url.origin) return false
  const directory = parent.pathname.endsWith('/') ? parent.pathname : `${parent.pathname}/`
  return parent.pathname === url.pathname || url.pathname.startsWith(directory)
}

/** Most values in a document: the schema takes up to 50 µs for each, and a document of 64 KiB may hold 20,000. */
const MAX_VALUES = 1000

/** Why a document is too costly to check, counting nested values too; null if it is not. */
function excessOf(document: unknown): string | null {
  const tooMany = `the document has more than ${MAX_VALUES} values`
  const left = [document]
  for (let count = 0; count < MAX_VALUES; count++) {
    if (left.length === 0) return null
    const value = left.pop()
    if (typeof value === 'string' && hasLongHost(value)) return 'the document has a URI whose host is too long'
    if (typeof value !== 'object' || value === null) continue
    const members = Object.values(value)
    if (members.length > MAX_VALUES) return tooMany
    left.push(...members)
  }
  return left.length === 0 ? null : tooMany
}

/** Most keys, because the schema tries every kind of key on each of them. */
const MAX_KEYS = 50
/** Most redirect URIs, because each is parsed several times. */
const MAX_REDIRECT_URIS = 100

/** Why the lists of a document are too costly to check, in words; null if they are not. */
function faultOfLists(document: unknown): string | null {
  const { jwks, redirect_uris: uris } = (document ?? {}) as {
    jwks?: { keys?: unknown } | null
    redirect_uris?: unknown
  }
  if (Array.isArray(jwks?.keys) && jwks.keys.length > MAX_KEYS) return `jwks has more than ${MAX_KEYS} keys`
  return Array.isArray(uris) ? faultOfList(uris) : null
}

/** Why a list of redirect URIs is too costly to check, in words; null if it is not. */
function faultOfList(uris: readonly unknown[]): string | null {
  if (uris.length > MAX_REDIRECT_URIS) return `redirect_uris has more than ${MAX_REDIRECT_URIS} entries`
  const isOther = (uri: unknown) => typeof uri === 'string' && !isUriText(uri)
  return uris.some(isOther) ? 'a redirect URI has characters that have to be percent-encoded' : null
}

function validateClient(clientId: string, document: unknown, url: URL | null): ClientOutcome {
  const excess = excessOf(document) ?? faultOfLists(document)
  if (excess !== null) return { ok: false, reason: excess }
  const foreign = foreignFields.find((field) => typeof document === 'object' && document !== null && field in document)
  if (foreign !== undefined) return { ok: false, reason: `${foreign} is not supported` }
  const parsed = withoutFault(() => oauthClientMetadataSchema.safeParse(document))
  if (parsed === null) return { ok: false, reason: 'the document has a URI that is not valid' }
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return { ok: false, reason: `${issue?.path.join('.') || 'the document'}: ${issue?.message ?? 'not valid'}` }
  }
  const broken = rules.find((rule) => !rule.holds(parsed.data, url, clientId))
  return broken ? { ok: false, reason: broken.reason } : { ok: true, client: clientOf(clientId, parsed.data) }
}

/** Longest name that is stored with each session. Pages show the beginning of it. */
const MAX_NAME_CHARS = 256
const shortUri = (uri: string | undefined): string | null =>
  uri !== undefined && uri.length <= MAX_URI_CHARS ? uri : null

function clientOf(clientId: string, metadata: Metadata): ClientMetadata {
  return {
    clientId,
    name: metadata.client_name?.slice(0, MAX_NAME_CHARS).toWellFormed() ?? null,
    policyUri: shortUri(metadata.policy_uri),
    tosUri: shortUri(metadata.tos_uri),
    redirectUris: metadata.redirect_uris,
    scopes: (metadata.scope ?? '').split(' '),
    mayRefresh: metadata.grant_types.includes('refresh_token'),
    applicationType: metadata.application_type,
    authentication:
      metadata.token_endpoint_auth_method === 'private_key_jwt'
        ? {
            method: 'private_key_jwt',
            alg: metadata.token_endpoint_auth_signing_alg!,
            jwks: metadata.jwks?.keys ?? null,
            jwksUri: metadata.jwks_uri ?? null,
          }
        : { method: 'none' },
  }
}
