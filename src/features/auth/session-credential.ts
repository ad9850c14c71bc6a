/**
 * Sessions of ours: opened with a password or an app password, or left to the holder of a taken-down account.
 *
 * The table is all that limits an app password: one that was made without direct messages opens an `app` session, one
 * with them a `privileged` session.
 */
import { invalidToken } from '../../http/errors.ts'
import { isPrivilegedMethod } from '../../protocol/guarded-methods.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { boundTokenAsBearer, claimsToBeAccessToken } from '../oauth/oauth.ts'
import { presentedAs, requireNotTakendown, type Credential, type SessionDemand } from './credential.ts'
import { acceptedToken, readAccessToken, type SessionKind } from './session-tokens.ts'

interface Reach {
  /** Demands of endpoints that it meets. */
  meets: readonly SessionDemand[]
  /** Whether it reaches methods of other services that are privileged: direct messages, and moving the account. */
  privilegedMethods: boolean
  /** Whether it reads and sets the birth date. `granted`: if the app password was made with that. */
  personalDetails: 'always' | 'granted' | 'never'
}

const reach: Readonly<Record<SessionKind, Reach>> = {
  full: { meets: ['everyday', 'owner', 'leaving', 'every'], privilegedMethods: true, personalDetails: 'always' },
  privileged: { meets: ['everyday', 'every'], privilegedMethods: true, personalDetails: 'granted' },
  app: { meets: ['everyday', 'every'], privilegedMethods: false, personalDetails: 'granted' },
  // Moving away is all that is left to it; what else it may ask for, its endpoints say.
  takendown: { meets: ['leaving', 'every'], privilegedMethods: true, personalDetails: 'never' },
}

export interface SessionCaller {
  did: Did
  credential: SessionKind
  permissions: null
  /** Whether the caller may read and set the birth date. */
  personalDetails: boolean
}

export const sessionCredential: Credential<SessionCaller> = {
  name: 'session',
  recognises: presentedAs('bearer'),
  async check({ ctx }, token) {
    const read = await readAccessToken(ctx, token)
    if (!read.ok && claimsToBeAccessToken(token)) throw boundTokenAsBearer()
    const { did, kind, personalDetails: isGranted } = acceptedToken(read)
    const { personalDetails } = reach[kind]
    return { did, credential: kind, permissions: null, personalDetails: personalDetails === 'always' || (personalDetails === 'granted' && isGranted) }
  },
  may({ did, credential }, { sessions = 'everyday', refusesTakendown }, exchange) {
    if (!reach[credential].meets.includes(sessions)) throw invalidToken('Bad token scope')
    if (refusesTakendown) return requireNotTakendown(exchange, did)
  },
}

/** Whether a session may have this method of another service called for it. */
export const reachesMethod = (kind: SessionKind, nsid: string): boolean => reach[kind].privilegedMethods || !isPrivilegedMethod(nsid)
