/** Refresh tokens. That its session has not ended is checked where it is used up (`sessions.ts`). */
import { expiredToken } from '../../http/errors.ts'
import { presentedAs, type Credential } from './credential.ts'
import { acceptedToken, readRefreshToken } from './session-tokens.ts'
import type { RefreshCaller } from './sessions.ts'

/** `expired`: also one whose time is over. */
export const refreshCredential = ({ expired }: { expired: boolean }): Credential<RefreshCaller> => ({
  name: 'refresh token',
  recognises: presentedAs('bearer'),
  async check({ ctx }, token) {
    const read = acceptedToken(await readRefreshToken(ctx, token))
    if (read.expired && !expired) throw expiredToken('Token has expired')
    return { did: read.did, tokenId: read.tokenId }
  },
})
