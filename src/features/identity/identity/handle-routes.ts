import { procedure } from '../../../http/endpoint.ts'
import { insufficientScope } from '../../../http/errors.ts'
import { access } from '../../access/auth/auth.ts'
import { changeHandle } from './handle-change.ts'

export const handleRoutes = [
  procedure('com.atproto.identity.updateHandle', {
    auth: access({
      sessions: 'owner',
      grants: (permissions) => permissions.assertIdentity({ attr: 'handle' }),
      refusesTakendown: true,
    }),
    limit: 'updateHandle',
    async handler(call) {
      const { caller, input } = call
      // An agent never changes a handle, whatever scopes it was granted: its owner chooses the handle.
      if (caller.credential === 'agent') throw insufficientScope('Agents must not change handles')
      await changeHandle(call, caller.did, input.handle)
    },
  }),
]
