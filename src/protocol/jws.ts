/**
 * Compact JWS: decodes, signs and verifies with a key of either atproto curve.
 *
 * `decodeJws` returns unverified claims; trust nothing before `verifyJws` has accepted it.
 *
 * Source: RFC 7515; RFC 7518, 3.4 (ES256); RFC 8812, 3.2 (ES256K).
 */
import { hasMembers } from '../base/members.ts'
import { base64url } from './base64url.ts'
import type { Curve, K256, PublicKey, SigningKey } from './keys.ts'

export interface Jws {
  header: Record<string, unknown>
  payload: Record<string, unknown>
  /** The signed text: both encoded parts with the dot between them. */
  signed: Uint8Array
  signature: Uint8Array
}

const algorithms: Record<Curve, string> = { p256: 'ES256', k256: 'ES256K' }

const partPattern = /^[A-Za-z0-9_-]+$/

/** Returns null unless the text is three parts of base64url, the first two of which are JSON objects. */
export function decodeJws(text: string): Jws | null {
  const parts = text.split('.')
  if (parts.length !== 3 || !parts.every((part) => partPattern.test(part))) return null
  const header = decodeObject(parts[0]!)
  const payload = decodeObject(parts[1]!)
  if (header === null || payload === null) return null
  return {
    header,
    payload,
    signed: Buffer.from(`${parts[0]}.${parts[1]}`),
    signature: Buffer.from(parts[2]!, 'base64url'),
  }
}

/** Decodes a JSON object from base64url; null if it is not one. */
export function decodeObject(encoded: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString())
    return hasMembers(value) ? value : null
  } catch {
    return null // no JSON
  }
}

/** The base64url of an object's JSON. */
export const encodeObject = (value: object): string => base64url(Buffer.from(JSON.stringify(value)))

/** Returns the compact form. `header` must not have `alg`, which the key determines. */
export function signJws(key: SigningKey, header: object, payload: object): string {
  const signed = `${encodeObject({ alg: algorithms[key.publicKey.curve], ...header })}.${encodeObject(payload)}`
  return `${signed}.${base64url(key.sign(Buffer.from(signed)))}`
}

/**
 * Whether the key signed it and the header names the key's algorithm. High-S signatures are valid, as everywhere in
 * JOSE, unless the kind of token forbids them.
 */
export const verifyJws = (
  { header, signed, signature }: Jws,
  key: PublicKey,
  k256?: K256,
  { allowHighS = true }: { allowHighS?: boolean } = {},
): boolean => header.alg === algorithms[key.curve] && key.verify(signed, signature, { allowHighS, k256 })
