/**
 * Service tokens: a server presents one to another service to act for an account. A JWT signed with the repository's
 * signing key, for one audience and, nearly always, one method.
 *
 * Source: atproto "HTTP API (XRPC)", "Inter-Service Authentication (JWT)".
 */
import type { Did } from './identifiers.ts'
import { signJws } from './jws.ts'
import type { SigningKey } from './keys.ts'

export interface ServiceClaims {
  iss: Did
  /** The DID of the called service, with or without `#service`. */
  aud: string
  /** NSID of the only method that the token permits. */
  lxm?: string
  /** Seconds, as in every JWT. */
  iat: number
  exp: number
  /** Random, which makes two tokens of the same second differ. */
  jti: string
}

/** The compact form, signed with the issuer's key. */
export const formatServiceToken = (key: SigningKey, claims: ServiceClaims): string =>
  signJws(key, { typ: 'JWT' }, claims)
