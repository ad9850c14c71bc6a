/**
 * The guard of the routes of account owners under `/v1`: a wallet session, or a session with the scope of the account
 * itself. Apps, agents and app passwords are refused, whatever they were granted.
 *
 * These routes have statuses of their own for faults that XRPC reports as 400.
 */
import type { RequiredScope } from '../../../http/credential.ts'
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { forbidden, Refusal } from '../../../http/errors.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  agentKind,
  appKind,
  sessionKind,
  walletKind,
  type AccessCaller,
  type WalletCaller,
} from '../callers/callers.ts'
import { inOtherWords, refuseOthers, taking } from '../../../http/credential-guards.ts'

export interface OwnerCaller {
  did: Did
}

const holder = (required: Pick<RequiredScope, 'sessions' | 'refusesTakendown'>) =>
  taking<WalletCaller | AccessCaller>([walletKind, agentKind, sessionKind, appKind], refuseOthers, {
    ...required,
    grants: 'refuse',
  })

type Restatement = Record<string, { status: number; name: string }>

/** Status and name of a refusal here, by its name elsewhere. */
const restated: Restatement = {
  AuthenticationRequired: { status: 401, name: 'InvalidToken' },
  InvalidToken: { status: 401, name: 'InvalidToken' },
  ExpiredToken: { status: 401, name: 'ExpiredToken' },
  Forbidden: { status: 403, name: 'InsufficientScope' },
}

/** Returns the guard with other statuses and names for its refusals. */
const restating = <Caller>(guard: Guard<Caller>, as: Restatement): Guard<Caller> =>
  inOtherWords(guard, (refusal) => {
    const other = as[refusal.name]
    return other === undefined ? refusal : new Refusal(other.status, other.name, refusal.message, refusal.options)
  })

/** Throws `AuthMissing`, `InvalidToken` or `ExpiredToken` (401), `InsufficientScope` (403), or `AccountTakedown`. */
export const owner: Guard<OwnerCaller> = restating(holder({ sessions: 'owner', refusesTakendown: true }), restated)

/** Like `owner`, but also accepts the holder of a taken-down account, who may take their data along. */
export const leavingOwner: Guard<OwnerCaller> = restating(holder({ sessions: 'leaving' }), restated)

/** Recognises sessions of every scope, so that a session that does not suffice is refused for that reason. */
const anyHolder = holder({ sessions: 'every', refusesTakendown: true })

const holderOfAnyReach: Guard<OwnerCaller> = {
  ...anyHolder,
  async check(exchange: Exchange) {
    const caller = await anyHolder.check(exchange)
    if (caller.credential !== 'wallet' && caller.credential !== 'full')
      throw forbidden('A session of the account itself is required')
    return caller
  },
}

/** Like `owner`, but refuses an app password with `InsufficientScope`, too. */
export const accountItself: Guard<OwnerCaller> = restating(holderOfAnyReach, restated)

/**
 * The guard of accounts that manage their children. Throws `AuthenticationRequired` or `ExpiredToken` (401), and
 * `Forbidden` (403).
 */
export const parent: Guard<OwnerCaller> = restating(holderOfAnyReach, {
  AuthMissing: { status: 401, name: 'AuthenticationRequired' },
  InvalidToken: { status: 401, name: 'AuthenticationRequired' },
  AccountNotFound: { status: 401, name: 'AuthenticationRequired' },
  ExpiredToken: { status: 401, name: 'ExpiredToken' },
  AccountTakedown: { status: 403, name: 'Forbidden' },
  InsufficientScope: { status: 403, name: 'Forbidden' },
})
