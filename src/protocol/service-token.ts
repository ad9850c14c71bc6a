/**
 * Service tokens: what one account's server shows to another service to act for the account. A JWT signed with the
 * repository key, for one audience and, nearly always, one method.
 *
 * Source: atproto "XRPC", inter-service authentication.
 */
import type { Did } from './identifiers.ts'
import { signJws } from './jws.ts'
import type { SigningKey } from './keys.ts'

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

/** The compact form, signed with the issuer's key. */
export const formatServiceToken = (key: SigningKey, claims: ServiceClaims): string => signJws(key, { typ: 'JWT' }, claims)
