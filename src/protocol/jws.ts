/**
 * Compact JWS: taking one apart, and making one with ES256.
 *
 * Nothing here is trusted: `decodeJws` only says what the text claims. Source: RFC 7515; RFC 7518, 3.4.
 */
import type { PublicKey, SigningKey } from './keys.ts'

export interface Jws {
  header: Record<string, unknown>
  payload: Record<string, unknown>
  /** What the signature covers: both encoded parts with the dot between them. */
  signed: Uint8Array
  signature: Uint8Array
}

const base64url = /^[A-Za-z0-9_-]+$/

/** Null when it is not three parts of base64url, the first two of them JSON objects. */
export function decodeJws(text: string): Jws | null {
  const parts = text.split('.')
  if (parts.length !== 3 || !parts.every((part) => base64url.test(part))) return null
  const header = decodeObject(parts[0]!)
  const payload = decodeObject(parts[1]!)
  if (header === null || payload === null) return null
  return { header, payload, signed: Buffer.from(`${parts[0]}.${parts[1]}`), signature: Buffer.from(parts[2]!, 'base64url') }
}

/** A JSON object from its base64url; null when it is none. */
export function decodeObject(encoded: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null // no JSON
  }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** `header` without `alg`, which is ES256. The key is one of P-256. */
export function signEs256(key: SigningKey, header: object, payload: object): string {
  const signed = `${encode({ alg: 'ES256', ...header })}.${encode(payload)}`
  return `${signed}.${Buffer.from(key.sign(Buffer.from(signed))).toString('base64url')}`
}

export const verifiesEs256 = (jws: Jws, key: PublicKey): boolean => jws.header.alg === 'ES256' && key.verify(jws.signed, jws.signature, { allowHighS: true })
