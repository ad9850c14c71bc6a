/**
 * What this server knows of an OAuth client. `client-validation.ts` derives it from the document that the client
 * publishes.
 */

export type ApplicationType = 'web' | 'native'

export interface ClientMetadata {
  clientId: string
  /** The name that the client gives itself; null for a loopback client. */
  name: string | null
  policyUri: string | null
  tosUri: string | null
  redirectUris: readonly string[]
  /** The scopes that the client declares. */
  scopes: readonly string[]
  mayRefresh: boolean
  applicationType: ApplicationType
  /** How the client authenticates: not at all, or with a key. */
  authentication:
    | { method: 'none' }
    | { method: 'private_key_jwt'; alg: string; jwks: readonly object[] | null; jwksUri: string | null }
}

export type ClientOutcome = { ok: true; client: ClientMetadata } | { ok: false; reason: string }

const LOOPBACK_PREFIX = 'http://localhost'

/** Signature algorithms of client assertions. */
export const assertionAlgorithms = ['ES256', 'ES384', 'RS256', 'PS256'] as const

export const isLoopbackClientId = (clientId: string): boolean => clientId.startsWith(LOOPBACK_PREFIX)
