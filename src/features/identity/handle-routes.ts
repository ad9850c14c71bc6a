import { procedure } from '../../http/endpoint.ts'
import { fullAccess } from '../auth/auth.ts'
import { changeHandle } from './handle-change.ts'

export const handleRoutes = [
  procedure('com.atproto.identity.updateHandle', {
    auth: fullAccess({ standing: true }),
    limit: 'updateHandle',
    handler: ({ ctx, caller, input: { handle } }) => changeHandle(ctx, caller.did, handle),
  }),
]
