/** Who may call, by the credential that they present, and the kinds of credentials that other features declare. */
import type { Act, CredentialKind, Standing } from '../../../http/credential.ts'
import { credentialOf } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Permissions } from '../../../protocol/scopes.ts'
import type { SessionCaller } from './session-credential.ts'
import { sessionStanding } from './session-standing.ts'

/** An agent, limited to its scopes. */
export interface AgentCaller {
  did: Did
  credential: 'agent'
  permissions: Permissions
  personalDetails: false
  /** Whether it may read what only the account sees. */
  privateReads: boolean
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
  /** Token id of the grant, for the audit log. */
  tokenId: string
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

/** A service that holds a token which the account issued for one method. */
export interface ServiceAccountCaller {
  did: Did
  credential: 'service'
  permissions: null
  personalDetails: false
}

/** An account holder, or an app or agent that acts for one. */
export type AccessCaller = SessionCaller | GrantCaller | AgentCaller

const kind = <Caller>(name: string): CredentialKind<Caller> => ({ name })

/** The features that declare them import this one. */
export const agentKind = kind<AgentCaller>('agent')
export const appKind = kind<GrantCaller>('app')
export const operatorKind = kind<AdminCaller>('operator')
export const serviceKind = kind<ServiceCaller>('service')
export const moderationKind = kind<AdminCaller>('moderation service')
export const delegatedKind = kind<ServiceAccountCaller>('service of the account')

export const isAgent = (caller: { credential: string }): caller is AgentCaller => caller.credential === 'agent'

/**
 * What must still hold of the caller, to be read with the account; null for an agent, whose check is more than a SQL
 * condition, and for a service, whose token cannot be taken back.
 */
export function standingOf(ctx: Context, caller: AccessCaller | ServiceAccountCaller): Standing | null {
  if (caller.credential === 'agent' || caller.credential === 'service') return null
  return caller.credential === 'oauth' ? credentialOf(ctx, appKind).standing!(caller) : sessionStanding(ctx, caller)
}

/** Throws `InvalidToken` (401) if the agent may no longer act. */
export const refuseEndedAgent = (ctx: Context, reader: Reader, agent: AgentCaller): Promise<void> =>
  credentialOf(ctx, agentKind).again!(agent, ctx, reader)

/**
 * Record what an agent did, in the transaction that did it. Throws `InvalidToken` (401) if it was ended meanwhile,
 * which undoes the transaction.
 */
export const recordAgentUse = (ctx: Context, tx: Tx, agent: AgentCaller, act: Act): Promise<void> =>
  credentialOf(ctx, agentKind).record!(agent, ctx, tx, act)
