import { integerOption } from './command.ts'
import { operated } from './operated.ts'
import { findAccount } from './operator-accounts.ts'

export const inviteCreateCommand = operated({
  name: 'invite create',
  summary: 'Make invite codes.',
  details: '',
  options: {
    uses: { value: 'n', doc: 'Accounts that each code lets in; 1 without it.' },
    count: { value: 'n', doc: 'Codes; 1 without it.' },
    for: { value: 'ACCOUNT', doc: 'Give the codes to an account, which finds them in its app.' },
  },
  async run({ server, options }) {
    const [useCount, codeCount] = [integerOption(options, 'uses', 1) ?? 1, integerOption(options, 'count', 1) ?? 1]
    const { for: owner } = options
    const forAccounts = typeof owner === 'string' ? [(await findAccount(server, owner)).did] : []
    const made = await server.post<{ codes: { codes: string[] }[] }>('/xrpc/com.atproto.server.createInviteCodes', {
      useCount,
      codeCount,
      forAccounts,
    })
    const codes = made.codes.flatMap((each) => each.codes)
    return { value: codes, text: codes.join('\n') }
  },
})
