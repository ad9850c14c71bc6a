/** The texts that a paired operator device signs: a request to the admin interface, and its own registration. */
import { createHash } from 'node:crypto'
import { parseBase64url } from './base64url.ts'
import { parseDidKey } from './keys.ts'

export interface SignedRequest {
  method: string
  /** Raw path of the request line, without the query. */
  path: string
  /** Unix seconds, as sent. */
  timestamp: string
  nonce: string
  body: Uint8Array
}

/**
 * UTF-8 lines joined by LF, without a trailing LF. The lower-case hex of the SHA-256 of the body stands for the body.
 */
export const requestText = ({ method, path, timestamp, nonce, body }: SignedRequest): string =>
  [method.toUpperCase(), path, timestamp, nonce, createHash('sha256').update(body).digest('hex')].join('\n')

export const registrationText = (pairingCode: string, publicKey: string, timestamp: number): string =>
  [pairingCode, publicKey, timestamp].join('\n')

/**
 * Whether `signature` is the canonical unpadded base64url of a low-S P-256 signature over `text` by `publicKey`, a
 * did:key. Returns false for any other key, encoding or form.
 */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const key = parseDidKey(publicKey)
  const bytes = parseBase64url(signature)
  return key?.curve === 'p256' && bytes !== null && key.verify(Buffer.from(text), bytes)
}
