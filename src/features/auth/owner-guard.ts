/**
 * The guard of the routes of account owners under `/v1`: a wallet session, or a session with the reach of the account
 * itself. Apps, agents and app passwords are refused, whatever they were granted.
 *
 * These routes have statuses of their own for faults that XRPC reports as 400.
 */
import type { Exchange, Guard } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { credentials } from './credentials.ts'
import { refuseOthers, taking } from './credential.ts'
import type { AgentCaller } from './agent-credential.ts'
import type { GrantCaller } from './app-credential.ts'
import type { SessionCaller } from './session-credential.ts'
import type { WalletCaller } from './wallet-credential.ts'

export interface OwnerCaller {
  did: Did
}

const holder: Guard<OwnerCaller> = taking<WalletCaller | AgentCaller | SessionCaller | GrantCaller>(
  [credentials.wallet, credentials.agent, credentials.session, credentials.app],
  refuseOthers,
  { sessions: 'owner', grants: 'refuse', refusesTakendown: true },
)

/** By name of the refusal: its status and name here. */
const restated: Record<string, { status: number; name: string }> = {
  AuthenticationRequired: { status: 401, name: 'InvalidToken' },
  InvalidToken: { status: 401, name: 'InvalidToken' },
  ExpiredToken: { status: 401, name: 'ExpiredToken' },
  Forbidden: { status: 403, name: 'InsufficientScope' },
}

/** Throws `AuthMissing`, `InvalidToken` or `ExpiredToken` (401), `InsufficientScope` (403), or `AccountTakedown`. */
export const owner: Guard<OwnerCaller> = {
  ...holder,
  async check(exchange: Exchange) {
    try {
      return await holder.check(exchange)
    } catch (error) {
      const as = error instanceof Refusal ? restated[error.name] : undefined
      if (!(error instanceof Refusal) || as === undefined) throw error
      throw new Refusal(as.status, as.name, error.message, error.options)
    }
  },
}
