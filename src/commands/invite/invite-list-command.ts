import { adminCommand } from '../admin-command.ts'
import { allInvites, type Invite } from './operator-invites.ts'
import { minute, table } from '../report.ts'

const isOpen = ({ disabled, uses, available }: Invite) => !disabled && uses.length < available

function stateOf({ disabled, uses, available }: Invite): string {
  if (disabled) return 'disabled'
  return uses.length < available ? 'open' : 'used up'
}

export const inviteListCommand = adminCommand({
  summary: 'List the invite codes that can still be used.',
  details: '',
  options: { all: { doc: 'Include codes that are used up or disabled.' } },
  async run({ server, flags }) {
    const codes = (await allInvites(server)).filter((code) => flags.has('all') || isOpen(code))
    const rows = codes.map((code) => [
      code.code,
      `${code.uses.length} of ${code.available}`,
      stateOf(code),
      code.forAccount,
      minute(code.createdAt)!,
    ])
    return { value: codes, text: table(['CODE', 'USED', 'STATE', 'FOR', 'CREATED'], rows) }
  },
})
