/** Endpoints that change the handle of an account, and that say which handles are available. */
import { procedure, query } from '../../../http/endpoint.ts'
import { insufficientScope } from '../../../http/errors.ts'
import { checkHandle } from '../../../protocol/handle-policy.ts'
import { access } from '../../access/auth/auth.ts'
import { handlePolicy } from './handle-admission.ts'
import { changeHandle } from './handle-change.ts'
import { isNameTaken } from './name-claims.ts'

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
  query('com.atproto.temp.checkHandleAvailability', {
    async handler({ ctx, params: { handle } }) {
      const outcome = checkHandle(handle, handlePolicy(ctx))
      const isFree =
        outcome.ok && outcome.kind === 'served' && !(await isNameTaken.handle(ctx.db, outcome.handle, ctx.clock.now()))
      return {
        handle,
        result: isFree
          ? { $type: 'com.atproto.temp.checkHandleAvailability#resultAvailable' as const }
          : { $type: 'com.atproto.temp.checkHandleAvailability#resultUnavailable' as const, suggestions: [] },
      }
    },
  }),
]
