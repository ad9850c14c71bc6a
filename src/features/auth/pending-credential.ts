/** The session of an account in the making: an opaque token, good for a day, for the steps that make its identity. */
import { authenticationRequired } from '../../http/errors.ts'
import { findCeremonyBySession, type Ceremony } from '../provisioning/provisioning.ts'
import { presentedOpaqueToken, type Credential } from './credential.ts'

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
