/**
 * What a credential is: something in a request that shows who sends it. Each kind is one declaration in a file of its
 * own, listed in `credentials.ts`; guards say which of them they take.
 */
import type { Exchange, Guard } from '../../http/endpoint.ts'
import { authMissing, invalidToken } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { authorizationOf, type Authorization } from './authorization-header.ts'

export interface Credential<Caller> {
  name: string
  /** What the request presents as one of this kind, told by its form alone; null without. */
  recognises(exchange: Exchange): string | null
  /** Who shows it. Refuses what is forged, has expired or was withdrawn. */
  check(exchange: Exchange, presented: string): Caller | Promise<Caller>
  /** Refuses a caller who may not do with it what is demanded. Left out: it is good for all that takes it. */
  may?(caller: Caller, demand: Demand, exchange: Exchange): void | Promise<void>
}

/** What an endpoint demands; each kind of credential looks at what concerns it. */
export interface Demand {
  /** Sessions that may call; what each may is in `session-credential.ts`. */
  sessions?: SessionDemand
  /** What an app or agent needs: any grant, none will do (and what to tell it), or a check like `assertRepo`. */
  grants?: 'any' | 'refuse' | { refuse: string } | ((permissions: Permissions, exchange: Exchange) => void)
  /** Refuse taken-down and missing accounts in the guard instead of the handler. */
  refusesTakendown?: boolean
}

/**
 * `everyday`: what every app does. `owner`: only the account itself. `leaving`: the same, and the holder of a taken-down
 * account, who moves away. `every`: `everyday`, and that holder, who fetches what is theirs.
 */
export type SessionDemand = 'everyday' | 'owner' | 'leaving' | 'every'

/**
 * A guard that takes these credentials, and demands of them the same. The first one that the request presents decides;
 * `otherwise` gives the caller, or refuses, when it presents none of them.
 */
export const taking = <Caller>(credentials: readonly Credential<Caller>[], otherwise: (exchange: Exchange) => Caller, demand: Demand = {}): Guard<Caller> => ({
  personal: true,
  takes: credentials.map(({ name }) => name),
  async check(exchange) {
    for (const credential of credentials) {
      const presented = credential.recognises(exchange)
      if (presented === null) continue
      const caller = await credential.check(exchange, presented)
      if (credential.may) await credential.may(caller, demand, exchange)
      return caller
    }
    return otherwise(exchange)
  },
})

/** For guards of those who show tokens. */
export function refuseOthers({ request, ctx }: Exchange): never {
  if (authorizationOf(request) === null) throw authMissing(ctx.config.publicUrl)
  throw invalidToken('Unexpected authorization type')
}

/** What stands behind this scheme in the `Authorization` header. */
export const presentedAs =
  (scheme: Authorization['scheme']) =>
  ({ request }: Exchange): string | null => {
    const authorization = authorizationOf(request)
    return authorization?.scheme === scheme ? authorization.value : null
  }

export async function requireNotTakendown({ ctx }: Exchange, did: Did): Promise<void> {
  refuseTakendown(await accountStatus(ctx.db, did))
}
