/** The operator's credential: the admin token, or the signature of a paired device (`operators`). */
import { authenticationRequired } from '../../http/errors.ts'
import { actorOf, operatorOf } from '../operators/operators.ts'
import type { Credential } from './credential.ts'

export interface AdminCaller {
  /** The name in the audit log. */
  actor: string
}

export const operatorCredential: Credential<AdminCaller> = {
  name: 'operator',
  recognises: ({ request: { headers } }) => headers.get('authorization') ?? headers.get('x-admin-device'),
  async check(exchange) {
    const who = await operatorOf(exchange)
    if (who === null) throw authenticationRequired()
    return { actor: actorOf(who) }
  },
}
