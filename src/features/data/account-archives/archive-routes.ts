/** The archive of an account, for its holder to download and to restore the account from. */
import { perAccount, route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { leavingOwner, owner } from '../../access/auth/auth.ts'
import { importArchive } from './archive-import.ts'
import { archiveOfAccount } from './archive-stream.ts'

export const archiveRoutes = [
  route('GET', '/v1/account/archive', {
    auth: leavingOwner,
    limit: perAccount('exportAccount'),
    long: true,
    handler: (call) => archiveOfAccount(call, call.caller.did),
  }),
  route('POST', '/v1/account/archive', {
    auth: owner,
    limit: perAccount('importAccount'),
    long: true,
    async handler(call) {
      if (!call.ctx.config.repos.importsEnabled) throw invalidRequest('Service is not accepting repo imports')
      return importArchive(call, call.caller.did)
    },
  }),
]
