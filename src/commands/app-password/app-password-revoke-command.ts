import { holderCommand, SIGNS_IN } from './app-password-client.ts'

export const appPasswordRevokeCommand = holderCommand({
  summary: 'Revoke an app password, and end its sessions.',
  parameters: ['<handle or DID>', '<name>'],
  details: SIGNS_IN,
  async run({ positionals: [, name] }, server) {
    return { value: await server.post('/v1/app-passwords/revoke', { name }), text: `revoked: ${name}` }
  },
})
