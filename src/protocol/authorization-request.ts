/**
 * Checks a pushed authorization request against the client's metadata. The first failed check determines the error.
 *
 * Source: RFC 6749, 4.1; RFC 7636; RFC 9126; RFC 9449, 10; atproto "OAuth".
 */
import type { ClientMetadata } from './client-metadata.ts'
import { listedLanguage, type Language } from './languages.ts'
import { parseDid, parseHandle } from './identifiers.ts'
import { isCodeChallenge } from './pkce.ts'
import { isRegistered } from './redirect-uris.ts'
import {
  asksForOpenId,
  BASE_SCOPE,
  DeclaredScopes,
  isBoundedScope,
  MAX_SCOPE_CHARS,
  MAX_SCOPES,
  parseScopes,
} from './scopes.ts'

export interface AuthorizationRequest {
  clientId: string
  redirectUri: string
  responseMode: 'query' | 'fragment'
  codeChallenge: string
  /** In the order of the request. */
  scopes: readonly string[]
  state: string | null
  /** A DID or a handle, in lower case. It only prefills the form; the person may sign in with another account. */
  loginHint: string | null
  prompt: Prompt | null
  /** The first language in `ui_locales` that this server has; null or absent if the app names none of them. */
  language?: Language | null
  /** Thumbprint of the key that the code is bound to; null if any key may redeem it. */
  dpopJkt: string | null
}

const prompts = ['none', 'login', 'consent', 'select_account', 'create'] as const
export type Prompt = (typeof prompts)[number]

export type RequestOutcome = { ok: true; request: AuthorizationRequest } | { ok: false; error: string; reason: string }

type Given = Readonly<Record<string, string | undefined>>

interface Rule {
  error: string
  reason: string
  holds(given: Given, client: ClientMetadata): boolean
}

const absent = (name: string, error = 'invalid_request'): Rule => ({
  error,
  reason: `${name} is not supported`,
  holds: (given) => given[name] === undefined,
})

/** The state is stored with the request, and is part of the URL that returns to the app. */
const MAX_STATE_BYTES = 2048

const rules: readonly Rule[] = [
  absent('request', 'request_not_supported'),
  absent('request_uri'),
  absent('claims'),
  absent('id_token_hint'),
  absent('nonce'),
  {
    error: 'unsupported_response_type',
    reason: 'response_type must be code',
    holds: ({ response_type }) => response_type === 'code',
  },
  {
    error: 'invalid_request',
    reason: 'redirect_uri is missing, and the client has more than one',
    holds: ({ redirect_uri }, { redirectUris }) => redirect_uri !== undefined || redirectUris.length === 1,
  },
  {
    error: 'invalid_request',
    reason: 'redirect_uri is not registered for this client',
    holds: ({ redirect_uri }, { redirectUris }) =>
      redirect_uri === undefined || isRegistered(redirect_uri, redirectUris),
  },
  {
    error: 'invalid_request',
    reason: 'response_mode must be query or fragment',
    holds: ({ response_mode: mode = 'query' }) => mode === 'query' || mode === 'fragment',
  },
  {
    error: 'invalid_request',
    reason: 'code_challenge must be the S256 of a verifier',
    holds: ({ code_challenge = '' }) => isCodeChallenge(code_challenge),
  },
  {
    error: 'invalid_request',
    reason: 'code_challenge_method must be S256',
    holds: ({ code_challenge_method: method }) => method === 'S256',
  },
  {
    error: 'invalid_request',
    reason: `state has more than ${MAX_STATE_BYTES} bytes`,
    holds: ({ state = '' }) => Buffer.byteLength(state) <= MAX_STATE_BYTES,
  },
  {
    error: 'invalid_request',
    reason: 'dpop_jkt must be the thumbprint of a key',
    holds: ({ dpop_jkt: jkt }) => jkt === undefined || isThumbprint(jkt),
  },
  {
    error: 'invalid_scope',
    reason: `scope has more than ${MAX_SCOPES} values or ${MAX_SCOPE_CHARS} characters`,
    holds: ({ scope = '' }) => isBoundedScope(scope),
  },
  { error: 'invalid_scope', reason: 'openid is not supported', holds: ({ scope = '' }) => !asksForOpenId(scope) },
  {
    error: 'invalid_scope',
    reason: 'scope must contain atproto',
    holds: ({ scope = BASE_SCOPE }) => parseScopes(scope).includes(BASE_SCOPE),
  },
  {
    error: 'invalid_scope',
    reason: 'scope contains a value that the client metadata does not declare',
    holds: ({ scope = BASE_SCOPE }, { scopes }) => {
      const declared = new DeclaredScopes(scopes)
      return scope.split(' ').every((value) => value === '' || declared.has(value))
    },
  },
  {
    error: 'invalid_request',
    reason: 'login_hint must be a DID or a handle',
    holds: ({ login_hint: hint }) => hint === undefined || parseHint(hint) !== null,
  },
  {
    error: 'invalid_request',
    reason: `prompt must be one of ${prompts.join(', ')}`,
    holds: ({ prompt }) => prompt === undefined || parsePrompt(prompt) !== null,
  },
  {
    error: 'invalid_request',
    reason: 'consent_required: a public client cannot skip consent',
    holds: ({ prompt }, { authentication }) => prompt !== 'none' || authentication.method !== 'none',
  },
]

/**
 * `proofJkt` is the key of the request's own DPoP proof; null if it had none. `spaces`: whether this server has scopes
 * for spaces. Returns the checked request, or the OAuth error.
 */
export function checkAuthorizationRequest(
  given: Given,
  client: ClientMetadata,
  proofJkt: string | null,
  { spaces = false } = {},
): RequestOutcome {
  const broken = rules.find((rule) => !rule.holds(given, client))
  if (broken) return { ok: false, error: broken.error, reason: broken.reason }
  if (given.dpop_jkt !== undefined && proofJkt !== null && given.dpop_jkt !== proofJkt)
    return { ok: false, error: 'invalid_request', reason: 'dpop_jkt is not the key of the DPoP proof' }
  return {
    ok: true,
    request: {
      clientId: client.clientId,
      redirectUri: given.redirect_uri ?? client.redirectUris[0]!,
      responseMode: given.response_mode === 'fragment' ? 'fragment' : 'query',
      codeChallenge: given.code_challenge!,
      scopes: parseScopes(given.scope ?? BASE_SCOPE, { spaces }),
      state: given.state === undefined || given.state === '' ? null : given.state,
      loginHint: given.login_hint === undefined ? null : parseHint(given.login_hint),
      prompt: given.prompt === undefined ? null : parsePrompt(given.prompt),
      language: listedLanguage(given.ui_locales ?? ''),
      dpopJkt: proofJkt ?? given.dpop_jkt ?? null,
    },
  }
}

const isThumbprint = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

const parsePrompt = (text: string): Prompt | null => prompts.find((prompt) => prompt === text) ?? null

const parseHint = (text: string): string | null => parseDid(text) ?? parseHandle(text.toLowerCase())
