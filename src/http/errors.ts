/**
 * Refusals: errors that are part of the wire contract. There is one class; the surface that was called (`surfaces.ts`)
 * decides how it looks on the wire. Any other error is a bug or an outage, and becomes a 500 without its message.
 */

import { NoPlace } from '../base/places.ts'
import { DatabaseUnavailable, TextNotStorable } from '../platform/database/database.ts'
import { storageFaultOf } from '../platform/files/storage-faults.ts'
import { PlcDirectoryError } from '../platform/network/directory-client.ts'
import { BucketUnavailable } from '../platform/network/bucket-faults.ts'
import { LookupsFull } from '../platform/network/resolver.ts'

export interface RefusalOptions {
  /** Code in the nested dialect of `/v1`, if it differs from the one in `nestedCodes`. */
  code?: string
  headers?: Record<string, string>
  details?: unknown
  /** In XRPC, send the message as `error_description` too. */
  described?: boolean
}

/** `name` is the error name of the lexicon or the RFC; `status` is the HTTP status. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    override readonly name: string,
    message: string,
    readonly options: RefusalOptions = {},
  ) {
    super(message)
  }
}

/** A refusal in the vocabulary of RFC 6749: `error` is a lower-case code, `error_description` the message. */
export class OAuthError extends Refusal {
  constructor(status: number, error: string, description: string, headers?: Record<string, string>) {
    super(status, error, description, { headers })
  }
}

export const invalidRequest = (message: string) => new Refusal(400, 'InvalidRequest', message)
/** A field of a request that begins an account fails a check. */
export const invalidClaim = (message: string) => new Refusal(400, 'InvalidClaim', message)
export const invalidToken = (message: string) => new Refusal(400, 'InvalidToken', message)
export const expiredToken = (message: string) => new Refusal(400, 'ExpiredToken', message)
/** Points an OAuth client to the metadata that tells it how to obtain a token. RFC 9728 section 5.1. */
export const authMissing = (publicUrl: string) =>
  new Refusal(401, 'AuthMissing', 'Authentication Required', {
    headers: { 'WWW-Authenticate': `Bearer resource_metadata="${publicUrl}/.well-known/oauth-protected-resource"` },
  })
export const authenticationRequired = (message = 'Authentication Required') =>
  new Refusal(401, 'AuthenticationRequired', message)
export const forbidden = (message = 'Forbidden') => new Refusal(403, 'Forbidden', message)
/** An agent lacks the scope that the message names, or no scope would suffice. */
export const insufficientScope = (message: string) =>
  new Refusal(403, 'InsufficientScope', message, { described: true })
export const notFound = (message = 'Not Found') => new Refusal(404, 'NotFound', message)
export const claimCodeRedeemed = () => new Refusal(409, 'ClaimCodeRedeemed', 'The code has been used')
export const payloadTooLarge = () => new Refusal(413, 'PayloadTooLarge', 'request entity too large')
export const methodNotImplemented = () => new Refusal(501, 'MethodNotImplemented', 'Method Not Implemented')
export const upstreamFailure = (message = 'Upstream service unreachable') =>
  new Refusal(502, 'UpstreamFailure', message)
/** `retryAfterSecs`: when to try again; null if that is not known. */
export const serviceUnavailable = (message: string, retryAfterSecs: number | string | null = null) =>
  new Refusal(503, 'ServiceUnavailable', message, {
    ...(retryAfterSecs !== null && { headers: { 'Retry-After': String(retryAfterSecs) } }),
  })

export const internalError = () => new Refusal(500, 'InternalServerError', 'Internal Server Error')

/** `Retry-After` of a request that found no place in time. */
const PLACE_RETRY_SECS = 10
/** `Retry-After` while this machine cannot store anything: an operator may have to free space first. */
const STORAGE_RETRY_SECS = 30

/**
 * Returns the refusal that an error stands for, or null if it is a bug or an outage: a `Refusal` itself,
 * `ServiceUnavailable` when there is no place for the request or for one to another service, too many names are being
 * looked up, the database or the blob bucket is unavailable, or this machine has no room left, `InvalidRequest` for
 * text that the database cannot store or for a request that the PLC directory refuses, and `UpstreamFailure` when the
 * directory fails.
 */
export function refusalOf(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error
  if (error instanceof NoPlace)
    return serviceUnavailable('Too many requests of this kind are in progress', PLACE_RETRY_SECS)
  if (error instanceof BucketUnavailable)
    return serviceUnavailable('The blob store is unavailable at the moment', error.retryAfterSecs)
  if (error instanceof LookupsFull || error instanceof DatabaseUnavailable)
    return serviceUnavailable(`Try again later: ${error.message}`, error.retryAfterSecs)
  if (error instanceof TextNotStorable) return invalidRequest(error.message)
  const fault = storageFaultOf(error)
  if (fault !== null) return serviceUnavailable(`Try again later: ${fault}`, STORAGE_RETRY_SECS)
  if (!(error instanceof PlcDirectoryError)) return null
  const isCallers = error.status !== null && error.status >= 400 && error.status < 500
  return isCallers
    ? invalidRequest(error.message)
    : new Refusal(502, 'UpstreamFailure', error.message, { code: 'PLC_DIRECTORY_ERROR' })
}

/** Whether nothing can be stored at the moment, whatever the request. */
export const isStorageOutage = (error: unknown): boolean =>
  error instanceof DatabaseUnavailable || storageFaultOf(error) !== null

/** Error names and their codes in the nested dialect. A name without a row is sent unchanged. */
export const nestedCodes: Record<string, string> = {
  InvalidClaim: 'INVALID_CLAIM',
  InvalidHandle: 'INVALID_HANDLE',
  HandleResolutionFailed: 'HANDLE_RESOLUTION_FAILED',
  AuthenticationRequired: 'UNAUTHORIZED',
  AuthMissing: 'AUTHENTICATION_REQUIRED',
  InvalidToken: 'INVALID_TOKEN',
  ExpiredToken: 'TOKEN_EXPIRED',
  Forbidden: 'FORBIDDEN',
  NotFound: 'NOT_FOUND',
  HandleNotFound: 'HANDLE_NOT_FOUND',
  HandleNotAvailable: 'HANDLE_TAKEN',
  ClaimCodeRedeemed: 'CLAIM_CODE_REDEEMED',
  AccountExists: 'ACCOUNT_EXISTS',
  DidAlreadyExists: 'DID_ALREADY_EXISTS',
  Conflict: 'CONFLICT',
  PayloadTooLarge: 'PAYLOAD_TOO_LARGE',
  PayloadTooLargeError: 'PAYLOAD_TOO_LARGE',
  SyntaxError: 'InvalidRequest',
  RateLimitExceeded: 'RATE_LIMITED',
  InternalServerError: 'INTERNAL_ERROR',
  PlcDirectoryError: 'PLC_DIRECTORY_ERROR',
  DnsError: 'DNS_ERROR',
  ServiceUnavailable: 'SERVICE_UNAVAILABLE',
}
