/**
 * A credential is the part of a request that identifies its sender. The feature that issues a kind, or knows how to
 * check it, declares it in its `Feature`; guards name the kinds that they accept.
 */
import type { Context } from '../platform/context.ts'
import type { Reader, Tx } from '../platform/database/database.ts'
import type { Permissions } from '../protocol/scopes.ts'
import type { Exchange } from './endpoint.ts'
import type { Revalidation } from './revalidation.ts'

/** Names a kind of credential, whose guards hand a `Caller` to the handler. */
export interface CredentialKind<Caller> {
  readonly name: string
  /** Replaces how the credential is recognised. */
  recognises?(exchange: Exchange): string | null
  /** Never set: it ties the type to the name. */
  readonly caller?: Caller
}

/** Something that a caller did, for the record of the account. */
export interface Act {
  type: 'repo_write' | 'blob_upload' | 'preferences' | 'service_call'
  detail: Record<string, unknown>
}

export interface Credential<Caller> extends CredentialKind<Caller> {
  /** Returns what the request presents as this kind, judged by its form alone, or null if nothing. */
  recognises(exchange: Exchange): string | null
  /** Returns the caller. Throws a `Refusal` if the credential is forged, expired or revoked. */
  check(exchange: Exchange, presented: string): Caller | Promise<Caller>
  /**
   * Throws a `Refusal` if the caller does not have the required scope. If omitted, every endpoint that accepts the kind
   * allows it.
   */
  may?(caller: Caller, required: RequiredScope, exchange: Exchange): void | Promise<void>
  /** A condition that revalidates the caller with the row of the account. Omitted if a condition is not enough. */
  revalidation?(caller: Caller, ctx: Context): Revalidation
  /**
   * Revalidates the caller. If omitted, credentials of this kind cannot be revoked while a request runs. `required` is
   * what the guard required of the caller; nothing if another feature revalidates.
   */
  revalidate?(caller: Caller, ctx: Context, reader: Reader, required?: RequiredScope): Promise<void>
  /**
   * Records what the caller did, in the transaction that did it. Throws a `Refusal` if the caller has ended meanwhile.
   */
  record?(caller: Caller, ctx: Context, tx: Tx, act: Act): Promise<void>
}

/** The requirements of an endpoint. Each kind of credential checks the members that concern it. */
export interface RequiredScope {
  /** Which sessions may call; `session-credential.ts` says which kinds of sessions suffice. */
  sessions?: RequiredSession
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
   * The handler revalidates the caller (`revalidationOf`), before anything else that counts, and with a statement that
   * it needs anyway. Otherwise the guard looks sessions up.
   */
  handlerRevalidates?: boolean
}

/**
 * `everyday`: any session of an account that is not taken down. `owner`: only the account itself. `leaving`: `owner`,
 * and the holder of a taken-down account, to move away. `every`: `everyday`, and that holder, to fetch their own data.
 */
export type RequiredSession = 'everyday' | 'owner' | 'leaving' | 'every'
