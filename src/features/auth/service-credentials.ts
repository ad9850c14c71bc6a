/** Credentials that are service tokens (`service-auth.ts`): of any issuer, of the moderation service, of an account here. */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidToken } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { decodeJws, decodeObject } from '../../protocol/jws.ts'
import { presentedAs, requireNotTakendown, type Credential } from './credential.ts'
import type { AdminCaller } from './operator-credential.ts'
import { LABELER, verifyServiceToken, type ServiceCaller } from './service-auth.ts'

const bearer = presentedAs('bearer')

/** A token of any issuer for the called method. */
export const serviceCredential: Credential<ServiceCaller> = {
  name: 'service',
  recognises: bearer,
  check: ({ ctx, nsid }, token) => verifyServiceToken(ctx, token, { lxm: nsid }),
}

/** A token of the configured moderation service. */
export const moderationCredential: Credential<AdminCaller> = {
  name: 'moderation service',
  recognises(exchange) {
    const token = exchange.nsid === null ? null : bearer(exchange)
    // The admin token is not a JWT.
    return token !== null && decodeJws(token) !== null ? token : null
  },
  async check({ ctx, nsid }, token) {
    const accepts = ({ iss, service }: ServiceCaller) => iss === ctx.config.moderation.did && (service === null || service === LABELER)
    const { iss } = await verifyServiceToken(ctx, token, { lxm: nsid, accepts })
    return { actor: iss }
  },
}

/** A service that holds a token which the account issued for one method. */
export interface ServiceAccountCaller {
  did: Did
  credential: 'service'
  permissions: null
  personalDetails: false
}

export const delegatedCredential: Credential<ServiceAccountCaller> = {
  name: 'service of the account',
  recognises: bearer,
  async check(exchange, token) {
    // Runs before the key is fetched, so the DID of a stranger is never resolved.
    const accepts = async ({ iss }: ServiceCaller) => {
      await requireNotTakendown(exchange, iss)
      return true
    }
    const { iss } = await verifyServiceToken(exchange.ctx, token, { lxm: exchange.nsid, accepts })
    return { did: iss, credential: 'service', permissions: null, personalDetails: false }
  },
}

/**
 * The same credential for a guard that accepts sessions too: a service token is recognised by its `lxm`, which session
 * tokens lack. Throws `InvalidToken` if the token is not a JWT.
 */
export const besideSessions = <Caller>(credential: Credential<Caller>): Credential<Caller> => ({
  ...credential,
  recognises: (exchange) => (exchange.nsid === null ? null : namingMethod(exchange)),
})

function namingMethod(exchange: Exchange): string | null {
  const token = bearer(exchange)
  if (token === null) return null
  const payload = decodeObject(token.split('.')[1] ?? '')
  if (!payload) throw invalidToken('Token could not be verified')
  return payload['lxm'] === undefined ? null : token
}
