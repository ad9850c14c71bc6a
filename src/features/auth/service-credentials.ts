/** Service tokens (`service-auth.ts`): of any service, of the moderation service, and of a service for an account here. */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidToken } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { decodeJws, decodeObject } from '../../protocol/jws.ts'
import { presentedAs, requireNotTakendown, type Credential } from './credential.ts'
import type { AdminCaller } from './operator-credential.ts'
import { LABELER, verifyServiceToken, type ServiceCaller } from './service-auth.ts'

const bearer = presentedAs('bearer')

/** Whoever holds a token for the method that is called. */
export const serviceCredential: Credential<ServiceCaller> = {
  name: 'service',
  recognises: bearer,
  check: ({ ctx, nsid }, token) => verifyServiceToken(ctx, token, { lxm: nsid }),
}

/** The moderation service that the configuration names. */
export const moderationCredential: Credential<AdminCaller> = {
  name: 'moderation service',
  recognises(exchange) {
    const token = exchange.nsid === null ? null : bearer(exchange)
    // The admin token is no JWT.
    return token !== null && decodeJws(token) !== null ? token : null
  },
  async check({ ctx, nsid }, token) {
    const accepts = ({ iss, service }: ServiceCaller) => iss === ctx.config.moderation.did && (service === null || service === LABELER)
    const { iss } = await verifyServiceToken(ctx, token, { lxm: nsid, accepts })
    return { actor: iss }
  },
}

/** A service to which the account gave a token for one method. */
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
    // Before the key is fetched: a stranger's name is not looked up.
    const accepts = async ({ iss }: ServiceCaller) => {
      await requireNotTakendown(exchange, iss)
      return true
    }
    const { iss } = await verifyServiceToken(exchange.ctx, token, { lxm: exchange.nsid, accepts })
    return { did: iss, credential: 'service', permissions: null, personalDetails: false }
  },
}

/** Where sessions are taken too: told from them by naming a method, which service tokens do and sessions do not. Refuses what is no JWT at all. */
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
