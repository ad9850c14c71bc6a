/**
 * Service tokens: what one account's server shows to another service to act for the account. A JWT signed with the
 * repository key, for one audience and, nearly always, one method.
 *
 * Source: atproto "XRPC", inter-service authentication.
 */
import type { Did } from './identifiers.ts'
import type { Curve, SigningKey } from './keys.ts'

export interface ServiceClaims {
  iss: Did
  /** The DID of the service asked, with or without `#service`. */
  aud: string
  /** NSID of the one method it is good for. */
  lxm?: string
  /** Seconds, as in every JWT. */
  iat: number
  exp: number
  /** Random; makes two tokens of one second differ. */
  jti: string
}

const algorithms: Record<Curve, string> = { p256: 'ES256', k256: 'ES256K' }

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The compact form, signed with the issuer's key. */
export function formatServiceToken(key: SigningKey, claims: ServiceClaims): string {
  const signed = `${encoded({ typ: 'JWT', alg: algorithms[key.publicKey.curve] })}.${encoded(claims)}`
  return `${signed}.${Buffer.from(key.sign(Buffer.from(signed))).toString('base64url')}`
}
