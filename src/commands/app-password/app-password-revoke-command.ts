import { exitCodes } from '../command.ts'
import { holderCommand, SIGNS_IN } from './app-password-client.ts'

export const appPasswordRevokeCommand = holderCommand({
  summary: 'Revoke an app password, and end its sessions.',
  parameters: ['<handle or DID>', '<name>'],
  details: SIGNS_IN,
  async run({ terminal, flags, positionals: [, name] }, server) {
    const answer = await server.post<object>('/v1/app-passwords/revoke', { name })
    terminal.out(flags.has('json') ? JSON.stringify(answer, null, 2) : `revoked: ${name}`)
    return exitCodes.ok
  },
})
