/**
 * The texts that wallets sign. An envelope is a sequence of lines `name:length:value`, each ended by a line feed. The
 * length counts the bytes of the value, so a value may contain any character and no two envelopes have the same text.
 *
 * `domain`, `method` and `path` say what the signature is for: a proof for one endpoint is worth nothing at another.
 */
import { createHash } from 'node:crypto'
import type { Did } from './identifiers.ts'

/** Who signs, for which server, and when. `aud` is the server's DID, `key` a did:key, `timestamp` in Unix seconds. */
export interface Signer {
  aud: string
  did: Did
  key: string
  timestamp: number
  nonce: string
}

export interface ConsentDecision {
  request: string
  client: string
  decision: 'approve' | 'deny'
  /** Space-separated, as the wallet sends it. Ignored for a denial, which grants nothing. */
  grantedScope: string
}

type Field = readonly [name: string, value: string]

const envelope = (fields: readonly Field[]): Uint8Array =>
  Buffer.from(fields.map(([name, value]) => `${name}:${Buffer.byteLength(value)}:${value}\n`).join(''))

function signedRequest(
  domain: string,
  path: string,
  { aud, did, key, timestamp, nonce }: Signer,
  bound: readonly Field[] = [],
): Uint8Array {
  return envelope([
    ['domain', `org.obsign.custos.${domain}`],
    ['aud', aud],
    ['method', 'POST'],
    ['path', path],
    ['did', did],
    ['key', key],
    ...bound,
    ['timestamp', String(timestamp)],
    ['nonce', nonce],
  ])
}

export const sovereignSessionEnvelope = (signer: Signer): Uint8Array =>
  signedRequest('sovereign-session.v1', '/v1/sessions/sovereign', signer)

export const accountDeletionEnvelope = (signer: Signer): Uint8Array =>
  signedRequest('account-delete.v1', '/xrpc/com.atproto.server.deleteAccount', signer)

export const consentEnvelope = (signed: Signer & ConsentDecision): Uint8Array =>
  signedRequest('oauth-consent.v1', '/oauth/authorize/approve', signed, [
    ['request', signed.request],
    ['client', signed.client],
    ['decision', signed.decision],
    ['scopeHash', scopeHash(signed.decision === 'deny' ? '' : signed.grantedScope)],
  ])

/**
 * SHA-256 of the text exactly as it is sent, in lower-case hex: scopes in another order or spacing have another hash.
 */
export const scopeHash = (scope: string): string => createHash('sha256').update(scope).digest('hex')
