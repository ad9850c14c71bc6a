import { adminCommand } from '../admin-command.ts'

export const claimCodeRevokeCommand = adminCommand({
  summary: 'Revoke a claim code.',
  parameters: ['<code>'],
  details: '',
  async run({ server, positionals: [code = ''] }) {
    const value = await server.post('/v1/accounts/claim-codes/revoke', { code })
    return { value, text: `${code} is revoked.` }
  },
})
