/** com.atproto.server endpoints for a forgotten password. */
import { procedure } from '../../../http/endpoint.ts'
import { requestPasswordReset, resetPassword } from './password-changes.ts'

export const passwordRoutes = [
  procedure('com.atproto.server.requestPasswordReset', {
    limit: 'requestPasswordReset',
    handler: (call) => requestPasswordReset(call, call.input.email),
  }),
  procedure('com.atproto.server.resetPassword', {
    limit: 'resetPassword',
    handler: (call) => resetPassword(call, call.input.token, call.input.password),
  }),
]
