/**
 * A credential is the part of a request that identifies its sender. The feature that issues a kind, or knows how to
 * check it, declares it in its `Feature`; guards name the kinds that they accept.
 */
import type { Context } from '../platform/context.ts'
import type { Reader, Sql, Tx } from '../platform/database/database.ts'
import type { Permissions } from '../protocol/scopes.ts'
import type { Exchange } from './endpoint.ts'
import type { Refusal } from './errors.ts'

/** Names a kind of credential, whose guards hand a `Caller` to the handler. */
export interface CredentialKind<Caller> {
  readonly name: string
  /** Replaces how the credential is recognised. */
  recognises?(exchange: Exchange): string | null
  /** Never set: it ties the type to the name. */
  readonly caller?: Caller
}

/**
 * Conditions that the caller must still meet when the request takes effect, for example a live session. They are read
 * with the row of the account, so they cost no statement of their own.
 */
export interface Standing {
  condition: Sql
  /** Says why the caller may no longer act. */
  fallen(): Refusal
}

/** Something that a caller did, for the record of the account. */
export interface Act {
  type: 'repo_write' | 'blob_upload'
  detail: Record<string, unknown>
}

export interface Credential<Caller> extends CredentialKind<Caller> {
  /** Returns what the request presents as this kind, judged by its form alone, or null if nothing. */
  recognises(exchange: Exchange): string | null
  /** Returns the caller. Throws a `Refusal` if the credential is forged, expired or revoked. */
  check(exchange: Exchange, presented: string): Caller | Promise<Caller>
  /**
   * Throws a `Refusal` if the caller does not meet the demand. If omitted, every endpoint that accepts the kind allows
   * it.
   */
  may?(caller: Caller, demand: Demand, exchange: Exchange): void | Promise<void>
  /** Revalidates the caller, as a condition to be read with the account; null if SQL cannot express it. */
  standing?(caller: Caller, ctx: Context): Standing | null
  /**
   * Throws a `Refusal` if the caller has ended since. If omitted, the kind cannot be taken back while a request runs.
   */
  again?(caller: Caller, ctx: Context, reader: Reader): Promise<void>
  /**
   * Records what the caller did, in the transaction that did it. Throws a `Refusal` if the caller has ended meanwhile.
   */
  record?(caller: Caller, ctx: Context, tx: Tx, act: Act): Promise<void>
}

/** The requirements of an endpoint. Each kind of credential checks the members that concern it. */
export interface Demand {
  /** Which sessions may call; `session-credential.ts` defines what each kind meets. */
  sessions?: SessionDemand
  /**
   * The scope that an app or agent needs: any grant, a check such as `assertRepo`, or `refuse` (with a message) for
   * none at all.
   */
  grants?: 'any' | 'refuse' | { refuse: string } | ((permissions: Permissions, exchange: Exchange) => void)
  /** Open to agents too, as far as `grants` allows. Otherwise they are refused, whatever their scopes. */
  agents?: boolean
  /** Refuse taken-down and missing accounts in the guard instead of the handler. */
  refusesTakendown?: boolean
  /**
   * The handler revalidates the caller (`standingOf`), before anything else that counts, and with a
   * statement that it needs anyway. Otherwise the guard looks sessions up.
   */
  handlerAsksStanding?: boolean
}

/**
 * `everyday`: any session of an account that is not taken down. `owner`: only the account itself. `leaving`: `owner`,
 * and the holder of a taken-down account, to move away. `every`: `everyday`, and that holder, to fetch their own data.
 */
export type SessionDemand = 'everyday' | 'owner' | 'leaving' | 'every'
