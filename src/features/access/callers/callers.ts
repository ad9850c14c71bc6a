/**
 * The door of callers: who may call, by the credential that they present. The features that issue or check a kind of
 * credential declare it in their `Feature`, and import this one.
 */
import type { Act, CredentialKind } from '../../../http/credential.ts'
import { perAccount, type CallLimit, type Exchange } from '../../../http/endpoint.ts'
import { credentialOf } from '../../../http/hooks.ts'
import { charge } from '../../../http/limiting.ts'
import type { Revalidation } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Permissions } from '../../../protocol/scopes.ts'

/**
 * What opened a session: the account's password; an app password without (`app`) or with (`privileged`) direct
 * messages, or with scopes; or the password of a taken-down account.
 */
export type SessionKind = 'full' | 'privileged' | 'app' | 'scoped' | 'takendown'

/** The holder of a session. */
export interface SessionCaller {
  did: Did
  credential: SessionKind
  sessionId: string
  /** What the scopes of an app password permit; null for any other session. */
  permissions: Permissions | null
  /** Whether the caller may read and set the birth date. */
  personalDetails: boolean
  /** Whether the caller may call privileged methods of other services: direct messages, and account migration. */
  privilegedMethods: boolean
}

/** A wallet, by a session of the account's owner. */
export interface WalletCaller {
  did: Did
  credential: 'wallet'
  /** Identifies the session. */
  tokenHash: string
}

/** An agent, limited to its scopes. */
export interface AgentCaller {
  did: Did
  credential: 'agent'
  permissions: Permissions
  personalDetails: false
  /** Whether it may read what only the account sees. */
  privateReads: boolean
  /**
   * Whether another account made this account for the agent. Such an account has no address that could be confirmed.
   */
  ofChild: boolean
  tokenId: string
  registrationId: string
}

/** An OAuth app, limited to its grant. */
export interface GrantCaller {
  did: Did
  credential: 'oauth'
  permissions: Permissions
  personalDetails: false
  sessionId: string
  /** Id of the access token, for the audit log. */
  tokenId: string
}

/** An OAuth app that a delegate of the account has signed in, limited to its grant and to what the delegate may do. */
export interface DelegateCaller extends Omit<GrantCaller, 'credential'> {
  credential: 'delegate'
  delegationId: string
}

export interface AdminCaller {
  /** The name in the audit log. */
  actor: string
}

/** Another service. */
export interface ServiceCaller {
  /** The DID of the issuer, without a service fragment. */
  iss: Did
  /** The issuer's service fragment, such as `atproto_labeler`; null if the account itself is the issuer. */
  service: string | null
  jti: string | null
  /** Seconds since 1970. */
  exp: number
}

/** Another service that acts for an account, with a token that the account issued for one method. */
export interface AccountServiceCaller {
  did: Did
  credential: 'service'
  permissions: null
  personalDetails: false
}

/** An account holder, or an app, agent or delegate that acts for one. */
export type AccessCaller = SessionCaller | GrantCaller | DelegateCaller | AgentCaller

const kind = <Caller>(name: string): CredentialKind<Caller> => ({ name })

export const sessionKind = kind<SessionCaller>('session')
export const walletKind = kind<WalletCaller>('wallet session')
export const agentKind = kind<AgentCaller>('agent')
export const appKind = kind<GrantCaller | DelegateCaller>('app')
export const operatorKind = kind<AdminCaller>('operator')
export const serviceKind = kind<ServiceCaller>('service')
export const moderationKind = kind<AdminCaller>('moderation service')
export const accountServiceKind = kind<AccountServiceCaller>('service of the account')

export const isAgent = (caller: { credential: string }): caller is AgentCaller => caller.credential === 'agent'

export const isDelegate = (caller: { credential: string }): caller is DelegateCaller => caller.credential === 'delegate'

/** A caller whose acts are recorded for the account holder. */
export type RecordedCaller = AgentCaller | DelegateCaller
export const isRecorded = (caller: { credential: string }): caller is RecordedCaller =>
  isAgent(caller) || isDelegate(caller)

/**
 * How to revalidate the caller in the query for the account's row. Null for an agent, whose revalidation takes more
 * than a condition, and for a service, whose token cannot be revoked.
 */
export function revalidationOf(ctx: Context, caller: AccessCaller | AccountServiceCaller): Revalidation | null {
  if (caller.credential === 'agent' || caller.credential === 'service') return null
  return caller.credential === 'oauth' || caller.credential === 'delegate'
    ? credentialOf(ctx, appKind).revalidation!(caller, ctx)
    : credentialOf(ctx, sessionKind).revalidation!(caller, ctx)
}

/** Throws `InvalidToken` (401) if the agent may no longer act. */
export const revalidateAgent = (ctx: Context, reader: Reader, agent: AgentCaller): Promise<void> =>
  credentialOf(ctx, agentKind).revalidate!(agent, ctx, reader)

/** Charges write points to the account of the caller, which has one budget for everything that it writes. */
export const writesOf = <Input>(cost: (input: Input) => number): CallLimit<{ caller: AccessCaller; input: Input }> => ({
  ...perAccount('repoWrite'),
  cost: ({ input }) => cost(input),
})

/** Throws `RateLimitExceeded` if the record of what agents and delegates of the account do would grow too fast. */
export const chargeRecord = (exchange: Exchange, { did }: RecordedCaller): Promise<void> =>
  charge(exchange, { name: 'recordedCall', key: did })

/**
 * Record what an agent or a delegate did, in the transaction that did it. Throws `InvalidToken` (401) if its access has
 * ended meanwhile, which rolls the transaction back.
 */
export const recordUse = (ctx: Context, tx: Tx, caller: RecordedCaller, act: Act): Promise<void> =>
  isAgent(caller)
    ? credentialOf(ctx, agentKind).record!(caller, ctx, tx, act)
    : credentialOf(ctx, appKind).record!(caller, ctx, tx, act)
