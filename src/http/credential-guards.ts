/** How guards try the credentials that they accept. */
import type { Credential, CredentialKind, RequiredScope } from './credential.ts'
import type { Exchange, Guard } from './endpoint.ts'
import { authenticationRequired, authMissing, invalidToken, Refusal } from './errors.ts'
import { credentialOf } from './hooks.ts'
import { perContext } from '../platform/context.ts'
import { decodeObject } from '../protocol/jws.ts'
import { opaqueTokenHash } from '../protocol/opaque-token.ts'
import type { Authorization } from './authorization-header.ts'

/**
 * Returns a guard that accepts these credentials with one required scope. The first credential that the request
 * presents decides. If it presents none, `otherwise` returns the caller or throws.
 */
export const taking = <Caller>(
  kinds: readonly (CredentialKind<Caller> | Credential<Caller>)[],
  otherwise: (exchange: Exchange) => Caller,
  required: RequiredScope = {},
): Guard<Caller> => {
  const credentialsOf = perContext((ctx) =>
    kinds.map((kind) => ('check' in kind ? kind : { ...credentialOf(ctx, kind), ...kind })),
  )
  return {
    personal: true,
    takes: kinds.map(({ name }) => name),
    // Not `async`: a token that was verified before is checked without waiting, and so is its caller admitted.
    check(exchange) {
      for (const credential of credentialsOf(exchange.ctx)) {
        const presented = credential.recognises(exchange)
        if (presented === null) continue
        const caller = credential.check(exchange, presented)
        return caller instanceof Promise
          ? caller.then((known) => admitted(exchange, credential, known, required))
          : admitted(exchange, credential, caller, required)
      }
      return otherwise(exchange)
    },
  }
}

/** Returns the caller, or a promise of it if checking the required scope has to wait. */
function admitted<Caller>(
  exchange: Exchange,
  credential: Credential<Caller>,
  caller: Caller,
  required: RequiredScope,
): Caller | Promise<Caller> {
  const { may, revalidate } = credential
  if (revalidate) exchange.revalidate = (reader) => revalidate(caller, exchange.ctx, reader, required)
  const asked = may?.(caller, required, exchange)
  return asked ? asked.then(() => caller) : caller
}

/** Returns the guard with its refusals in the words of other routes. */
export const inOtherWords = <Caller>(
  guard: Guard<Caller>,
  reword: (refusal: Refusal, exchange: Exchange) => Refusal,
): Guard<Caller> => ({
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
    const { revalidate } = exchange
    exchange.revalidate = (reader) => reworded(() => revalidate(reader))
    return caller
  },
})

/**
 * The `otherwise` of guards that require a token: throws `AuthMissing` without an `Authorization` header, else
 * `InvalidToken`.
 */
export function refuseOthers({ authorization, ctx }: Exchange): never {
  if (authorization === null) throw authMissing(ctx.config.publicUrl)
  throw invalidToken('Unexpected authorization type')
}

/**
 * Returns a function that reads the value of this scheme from the `Authorization` header, or null if another is used.
 */
export const presentedAs =
  (scheme: Authorization['scheme']) =>
  ({ authorization }: Exchange): string | null =>
    authorization?.scheme === scheme ? authorization.value : null

const bearer = presentedAs('bearer')

/**
 * Returns the stored hash of an opaque token that is sent as `Bearer`, or null if the request sends none of that form.
 */
export function presentedOpaqueToken(exchange: Exchange): string | null {
  const token = bearer(exchange)
  return token === null ? null : opaqueTokenHash(token)
}

/**
 * The kind of a service token, for a guard that accepts sessions too. A service token is recognised by its `lxm`, which
 * session tokens lack. Throws `InvalidToken` if the token is not a JWT.
 */
export const besideSessions = <Caller>(kind: CredentialKind<Caller>): CredentialKind<Caller> => ({
  ...kind,
  recognises: (exchange) => (exchange.nsid === null ? null : namingMethod(exchange)),
})

function namingMethod(exchange: Exchange): string | null {
  const token = bearer(exchange)
  if (token === null) return null
  const payload = decodeObject(token.split('.')[1] ?? '')
  if (!payload) throw invalidToken('Token could not be verified')
  return payload['lxm'] === undefined ? null : token
}

/** For routes of wallets: a malformed `Authorization` header is refused like a wrong token. */
export const strict = <Caller>(guard: Guard<Caller>): Guard<Caller> => ({
  ...guard,
  check(exchange) {
    try {
      void exchange.authorization
    } catch (error) {
      if (error instanceof Refusal) throw authenticationRequired(error.message)
      throw error
    }
    return guard.check(exchange)
  },
})
