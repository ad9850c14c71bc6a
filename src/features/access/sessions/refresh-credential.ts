/** The refresh token of a session. When it is exchanged, `session-life.ts` checks that the session still exists. */
import { expiredToken } from '../../../http/errors.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import type { Credential } from '../../../http/credential.ts'
import { acceptedToken, readRefreshToken } from './session-tokens.ts'
import type { RefreshCaller } from './session-life.ts'

/** `expired` accepts an expired token too. Throws `InvalidToken`, or `ExpiredToken`. */
export const refreshCredential = ({ expired }: { expired: boolean }): Credential<RefreshCaller> => ({
  name: 'refresh token',
  recognises: presentedAs('bearer'),
  async check({ ctx }, token) {
    const read = acceptedToken(await readRefreshToken(ctx, token))
    if (read.expired && !expired) throw expiredToken('Token has expired')
    return { did: read.did, tokenId: read.tokenId }
  },
})
