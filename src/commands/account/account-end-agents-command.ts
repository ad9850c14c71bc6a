import { Misuse } from '../command.ts'
import { adminCommand } from '../admin-command.ts'

export const accountEndAgentsCommand = adminCommand({
  summary: 'End a program that acts for an account, or all programs of an identity provider.',
  parameters: ['[registration]'],
  details: `Name a registration by its id, which begins with "reg_". The server then refuses all requests of that program, and
notifies the account holders by mail.`,
  options: { issuer: { value: 'URL', doc: 'End all programs that this provider vouches for.' } },
  async run({ server, positionals: [registrationId], options: { issuer } }) {
    if ((registrationId === undefined) === (issuer === undefined))
      throw new Misuse('name a registration, or a provider with --issuer')
    if (issuer === undefined)
      return {
        value: await server.post('/v1/admin/agents/revoke', { registrationId }),
        text: 'The program may no longer act.',
      }
    const value = await server.post<{ ended: number }>('/v1/admin/agents/revoke', { issuer })
    return { value, text: `Programs ended: ${value.ended}` }
  },
})
