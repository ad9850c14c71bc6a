import { integerOption } from '../command.ts'
import { adminCommand } from '../admin-command.ts'

export const claimCodeCreateCommand = adminCommand({
  summary: 'Create claim codes: short invite codes for one account each, which expire.',
  details: '',
  options: {
    count: { value: 'n', doc: 'Number of codes, 10 at most. Default: 1.' },
    hours: { value: 'n', doc: 'Time until they expire. Default: 24.' },
    domain: { value: 'DOMAIN', doc: 'Only for handles under this domain of the server, such as that of a community.' },
  },
  async run({ server, options }) {
    const expiresInHours = integerOption(options, 'hours', 1)
    const { domain } = options
    const { codes } = await server.post<{ codes: string[] }>('/v1/accounts/claim-codes', {
      count: integerOption(options, 'count', 1) ?? 1,
      ...(expiresInHours !== undefined && { expiresInHours }),
      ...(domain !== undefined && { domain: domain.replace(/^\./, '').toLowerCase() }),
    })
    return { value: codes, text: codes.join('\n') }
  },
})
