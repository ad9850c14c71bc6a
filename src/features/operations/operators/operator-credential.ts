/** The operator's credential: the admin token, or the signature of a paired device. */
import type { Credential } from '../../../http/credential.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { operatorKind, type AdminCaller } from '../../access/callers/callers.ts'
import { actorOf, operatorOf } from './operators.ts'

export const operatorCredential: Credential<AdminCaller> = {
  ...operatorKind,
  recognises: ({ request: { headers } }) => headers.get('authorization') ?? headers.get('x-admin-device'),
  async check(exchange) {
    const who = await operatorOf(exchange)
    if (who === null) throw authenticationRequired()
    return { actor: actorOf(who) }
  },
}
