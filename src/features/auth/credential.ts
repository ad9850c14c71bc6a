/**
 * A credential is the part of a request that identifies its sender. Each kind is one declaration in its own file,
 * listed in `credentials.ts`; a guard names the kinds that it accepts.
 */
import type { Exchange, Guard } from '../../http/endpoint.ts'
import { authMissing, invalidToken, Refusal } from '../../http/errors.ts'
import type { Reader } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { accountNotFound, accountStatus, refuseFallen, refuseTakendown, statusOfCaller, type Standing } from '../accounts/accounts.ts'
import { authorizationOf, type Authorization } from './authorization-header.ts'

export interface Credential<Caller> {
  name: string
  /** Returns what the request presents as this kind, judged by its form alone, or null if nothing. */
  recognises(exchange: Exchange): string | null
  /** Returns the caller. Throws a `Refusal` if the credential is forged, expired or revoked. */
  check(exchange: Exchange, presented: string): Caller | Promise<Caller>
  /** Throws a `Refusal` if the caller does not meet the demand. If omitted, every endpoint that accepts the kind allows it. */
  may?(caller: Caller, demand: Demand, exchange: Exchange): void | Promise<void>
  /** Throws a `Refusal` if the caller has ended since. If omitted, the kind cannot be taken back while a request runs. */
  again?(caller: Caller, exchange: Exchange, reader: Reader): Promise<void>
}

/** What an endpoint demands. Each kind of credential checks the members that concern it. */
export interface Demand {
  /** Which sessions may call; `session-credential.ts` defines what each kind meets. */
  sessions?: SessionDemand
  /** What an app or agent needs: any grant, a check such as `assertRepo`, or `refuse` (with a message) for none at all. */
  grants?: 'any' | 'refuse' | { refuse: string } | ((permissions: Permissions, exchange: Exchange) => void)
  /** Open to agents too, as far as `grants` allows. Otherwise they are refused, whatever their scopes. */
  agents?: boolean
  /** Refuse taken-down and missing accounts in the guard instead of the handler. */
  refusesTakendown?: boolean
  /**
   * The handler asks whether the caller still stands (`standingOf`), before anything else that counts, and with a
   * statement that it needs anyway. Otherwise the guard looks sessions up.
   */
  handlerAsksStanding?: boolean
}

/**
 * `everyday`: any session of an account that is not taken down. `owner`: only the account itself. `leaving`: `owner`,
 * and the holder of a taken-down account, to move away. `every`: `everyday`, and that holder, to fetch their own data.
 */
export type SessionDemand = 'everyday' | 'owner' | 'leaving' | 'every'

/**
 * Returns a guard that accepts these credentials under one demand. The first credential that the request presents
 * decides. If it presents none, `otherwise` returns the caller or throws.
 */
export const taking = <Caller>(
  credentials: readonly Credential<Caller>[],
  otherwise: (exchange: Exchange) => Caller,
  demand: Demand = {},
): Guard<Caller> => ({
  personal: true,
  takes: credentials.map(({ name }) => name),
  async check(exchange) {
    for (const credential of credentials) {
      const presented = credential.recognises(exchange)
      if (presented === null) continue
      const caller = await credential.check(exchange, presented)
      if (credential.may) await credential.may(caller, demand, exchange)
      if (credential.again) exchange.stillStands = (reader) => credential.again!(caller, exchange, reader)
      return caller
    }
    return otherwise(exchange)
  },
})

/** Returns the guard, whose refusals are put in the words of other routes. */
export const inOtherWords = <Caller>(guard: Guard<Caller>, reword: (refusal: Refusal, exchange: Exchange) => Refusal): Guard<Caller> => ({
  ...guard,
  async check(exchange) {
    const reworded = async <T>(ask: () => T | Promise<T>): Promise<T> => {
      try {
        return await ask()
      } catch (error) {
        throw error instanceof Refusal ? reword(error, exchange) : error
      }
    }
    const caller = await reworded(() => guard.check(exchange))
    const { stillStands } = exchange
    exchange.stillStands = (reader) => reworded(() => stillStands(reader))
    return caller
  },
})

/** The `otherwise` of guards that require a token: throws `AuthMissing` without an `Authorization` header, else `InvalidToken`. */
export function refuseOthers({ request, ctx }: Exchange): never {
  if (authorizationOf(request) === null) throw authMissing(ctx.config.publicUrl)
  throw invalidToken('Unexpected authorization type')
}

/** Returns a function that reads the value of this scheme from the `Authorization` header, or null if another is used. */
export const presentedAs =
  (scheme: Authorization['scheme']) =>
  ({ request }: Exchange): string | null => {
    const authorization = authorizationOf(request)
    return authorization?.scheme === scheme ? authorization.value : null
  }

const bearer = presentedAs('bearer')

/** Returns the stored hash of an opaque token that is sent as `Bearer`, or null if the request sends none of that form. */
export function presentedOpaqueToken(exchange: Exchange): string | null {
  const token = bearer(exchange)
  return token === null ? null : opaqueTokenHash(token)
}

/** Throws `AccountTakedown`, or `AccountNotFound` if the account is missing. */
export async function requireNotTakendown({ ctx }: Exchange, did: Did): Promise<void> {
  refuseTakendown(await accountStatus(ctx.db, did))
}

/** Throws `AccountNotFound`, or the refusal of a caller who no longer stands. */
export async function requireStanding(reader: Reader, did: Did, standing: Standing): Promise<void> {
  const account = await statusOfCaller(reader, did, standing)
  if (account === null) throw accountNotFound()
  refuseFallen(standing, account)
}
