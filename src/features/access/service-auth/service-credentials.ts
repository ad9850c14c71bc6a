/**
 * Credentials that are service tokens (`service-tokens.ts`): of any issuer, of the moderation service, and of an
 * account here that lets another service act for it.
 */
import type { Credential } from '../../../http/credential.ts'
import { decodeJws } from '../../../protocol/jws.ts'
import {
  accountServiceKind,
  moderationKind,
  serviceKind,
  type AdminCaller,
  type AccountServiceCaller,
  type ServiceCaller,
} from '../callers/callers.ts'
import { requireNotTakendown } from '../auth/auth.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import { LABELER, verifyServiceToken } from './service-tokens.ts'

const bearer = presentedAs('bearer')

/** A token of any issuer for the called method. */
export const serviceCredential: Credential<ServiceCaller> = {
  ...serviceKind,
  recognises: bearer,
  check: ({ ctx, nsid }, token) => verifyServiceToken(ctx, token, { lxm: nsid }),
}

/** A token of the configured moderation service. */
export const moderationCredential: Credential<AdminCaller> = {
  ...moderationKind,
  recognises(exchange) {
    const token = exchange.nsid === null ? null : bearer(exchange)
    // The admin token is not a JWT.
    return token !== null && decodeJws(token) !== null ? token : null
  },
  async check({ ctx, nsid }, token) {
    const accepts = ({ iss, service }: ServiceCaller) =>
      iss === ctx.config.moderation.did && (service === null || service === LABELER)
    const { iss } = await verifyServiceToken(ctx, token, { lxm: nsid, accepts })
    return { actor: iss }
  },
}

export const accountServiceCredential: Credential<AccountServiceCaller> = {
  ...accountServiceKind,
  recognises: bearer,
  async check(exchange, token) {
    // Runs before the key is fetched, so the DID of a stranger is never resolved.
    const accepts = async ({ iss, service }: ServiceCaller) => {
      await requireNotTakendown(exchange, iss)
      // The key of a labeler that an account runs does not act for the account.
      return service === null
    }
    const { iss } = await verifyServiceToken(exchange.ctx, token, { lxm: exchange.nsid, accepts })
    return { did: iss, credential: 'service', permissions: null, personalDetails: false }
  },
}
