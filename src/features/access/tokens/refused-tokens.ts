/** The refusals of access tokens that are bound to a key. RFC 9449, 7.1. */
import { Refusal } from '../../../http/errors.ts'
import { dpopAlgorithms } from '../../../protocol/dpop.ts'

/** Returns the `invalid_token` refusal for an app's access token that is sent as `Bearer`. RFC 9449, 7.2. */
export const boundTokenAsBearer = () =>
  refusedToken('DPoP', 'invalid_token', 'The access token is bound to a key and requires a DPoP proof')

export const invalidAccessToken = () => refusedToken('DPoP', 'invalid_token', 'The access token is not valid')

/**
 * Returns a 401 with a challenge (RFC 9449, 7.1). OAuth clients act on `error` in the challenge. Clients that know only
 * password sessions read `name` in the body, which may therefore differ from `error`.
 */
export function refusedToken(scheme: 'DPoP' | 'Bearer', error: string, description: string, name = error): Refusal {
  const algorithms = scheme === 'DPoP' ? `, algs="${dpopAlgorithms.join(' ')}"` : ''
  const challenge = `${scheme} error="${error}", error_description="${description}"${algorithms}`
  const headers = { 'WWW-Authenticate': challenge }
  return new Refusal(
    401,
    name,
    description,
    name === error && error !== 'use_dpop_nonce' ? { headers, code: 'INVALID_TOKEN' } : { headers },
  )
}
