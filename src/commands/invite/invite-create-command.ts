import { integerOption } from '../command.ts'
import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'

export const inviteCreateCommand = adminCommand({
  summary: 'Create invite codes.',
  details: '',
  options: {
    uses: { value: 'n', doc: 'Number of accounts that can sign up with each code. Default: 1.' },
    count: { value: 'n', doc: 'Number of codes. Default: 1.' },
    for: { value: 'ACCOUNT', doc: 'Assign the codes to an account. Its holder sees them in the app.' },
  },
  async run({ server, options }) {
    const [useCount, codeCount] = [integerOption(options, 'uses', 1) ?? 1, integerOption(options, 'count', 1) ?? 1]
    const { for: owner } = options
    const forAccounts = owner === undefined ? [] : [(await findAccount(server, owner)).did]
    const made = await server.post<{ codes: { codes: string[] }[] }>('/xrpc/com.atproto.server.createInviteCodes', {
      useCount,
      codeCount,
      forAccounts,
    })
    const codes = made.codes.flatMap((each) => each.codes)
    return { value: codes, text: codes.join('\n') }
  },
})
