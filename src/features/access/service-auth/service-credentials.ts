/**
 * Credentials that are service tokens (`service-tokens.ts`): of any account; of the moderation service; of an account
 * here, which lets another service act for it.
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

/** Whether the account itself is the issuer. The key of a labeler that it runs must not act for it. */
const isAccount = ({ service }: ServiceCaller): boolean => service === null

/** A token of an account, here or elsewhere, for the called method. */
export const serviceCredential: Credential<ServiceCaller> = {
  ...serviceKind,
  recognises: bearer,
  check: ({ ctx, nsid }, token) => verifyServiceToken(ctx, token, { lxm: nsid, accepts: isAccount }),
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
    const accepts = async (issuer: ServiceCaller) => {
      await requireNotTakendown(exchange, issuer.iss)
      return isAccount(issuer)
    }
    const { iss } = await verifyServiceToken(exchange.ctx, token, { lxm: exchange.nsid, accepts })
    return { did: iss, credential: 'service', permissions: null, personalDetails: false }
  },
}
