/** The session of a pending account: an opaque token that is valid for a day, for the steps that make its identity. */
import type { Credential } from '../../../http/credential.ts'
import type { Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, authMissing } from '../../../http/errors.ts'
import { presentedOpaqueToken, strict, taking } from '../../../http/credential-guards.ts'
import { findCeremonyBySession, type Ceremony } from './ceremony-store.ts'

export interface PendingCaller {
  ceremony: Ceremony
}

/** Throws `AuthenticationRequired` if the session is unknown, void or expired. */
export const pendingCredential: Credential<PendingCaller> = {
  name: 'pending session',
  recognises: presentedOpaqueToken,
  async check({ ctx }, tokenHash) {
    const ceremony = await findCeremonyBySession(ctx.db, tokenHash, ctx.clock.now())
    if (ceremony === null) throw authenticationRequired('The session is unknown or has ended')
    return { ceremony }
  },
}

/**
 * Guard for a wallet whose account is pending. Throws `AuthMissing` without a token, and `AuthenticationRequired`
 * without a live session.
 */
export const pending: Guard<PendingCaller> = strict(
  taking([pendingCredential], (exchange) => {
    if (exchange.authorization === null) throw authMissing(exchange.ctx.config.publicUrl)
    throw authenticationRequired()
  }),
)
