/** A forgotten password. */
import { procedure } from '../../http/endpoint.ts'
import { requestPasswordReset, resetPassword } from './password-changes.ts'

export const passwordRoutes = [
  procedure('com.atproto.server.requestPasswordReset', {
    limit: 'requestPasswordReset',
    handler: ({ ctx, input }) => requestPasswordReset(ctx, input.email),
  }),
  procedure('com.atproto.server.resetPassword', {
    limit: 'resetPassword',
    handler: ({ ctx, input }) => resetPassword(ctx, input.token, input.password),
  }),
]
