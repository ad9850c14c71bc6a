/** The operator's credential: the admin token, a device's signature, or the session of an account with a role. */
import type { Credential } from '../../../http/credential.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { operatorKind, type AdminCaller } from '../../access/callers/callers.ts'
import { actorOf, operatorOf, requireMay, requireReadableReason } from './operators.ts'
import { actOfMethod } from './roles.ts'

export const operatorCredential: Credential<AdminCaller> = {
  ...operatorKind,
  recognises: ({ request: { headers } }) => headers.get('authorization') ?? headers.get('x-admin-device'),
  async check(exchange) {
    const who = await operatorOf(exchange)
    if (who === null) throw authenticationRequired()
    requireMay(who, actOfMethod(exchange.nsid))
    requireReadableReason(exchange)
    return { actor: actorOf(who) }
  },
}
