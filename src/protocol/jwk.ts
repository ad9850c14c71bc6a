/** Public keys as JSON. Source: RFC 7517; RFC 7518, 6.2; RFC 7638 for the thumbprint. */
import { createHash } from 'node:crypto'
import { parseBase64url } from './base64url.ts'

/** A point of P-256, each coordinate 32 bytes in base64url. */
export interface P256Jwk {
  kty: 'EC'
  crv: 'P-256'
  x: string
  y: string
}

const COORDINATE_BYTES = 32

/** Members that only a private or a symmetric key has. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/**
 * Returns the public P-256 key in `value`, or null. Coordinates must be in canonical base64url, because a key must have
 * only one thumbprint. Whether the point is on the curve is found out when the key is used.
 */
export function parseP256Jwk(value: unknown): P256Jwk | null {
  if (typeof value !== 'object' || value === null) return null
  const { kty, crv, x, y } = value as Record<string, unknown>
  if (kty !== 'EC' || crv !== 'P-256' || !isCoordinate(x) || !isCoordinate(y)) return null
  return privateMembers.some((member) => member in value) ? null : { kty, crv, x, y }
}

const isCoordinate = (text: unknown): text is string =>
  typeof text === 'string' && parseBase64url(text)?.length === COORDINATE_BYTES

/** Members that RFC 7638, 3.2 requires for each key type, in order of their names. */
const thumbprintMembers: Record<string, readonly string[]> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
}

/** Base64url SHA-256 of the key's required members; null for another key type. */
export function thumbprint(jwk: object): string | null {
  const given = jwk as Record<string, unknown>
  const members = thumbprintMembers[String(given.kty)]
  if (!members) return null
  const required = Object.fromEntries(members.map((member) => [member, given[member]]))
  return createHash('sha256').update(JSON.stringify(required)).digest('base64url')
}
