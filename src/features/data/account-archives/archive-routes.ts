/** The download of an account for its holder. Operators have one of their own. */
import { route } from '../../../http/endpoint.ts'
import { leavingOwner } from '../../access/auth/auth.ts'
import { archiveOfAccount } from './archive-stream.ts'

export const archiveRoutes = [
  route('GET', '/v1/account/archive', {
    auth: leavingOwner,
    limit: { name: 'exportAccount', key: ({ caller }) => caller.did },
    long: true,
    handler: (call) => archiveOfAccount(call, call.caller.did),
  }),
]
