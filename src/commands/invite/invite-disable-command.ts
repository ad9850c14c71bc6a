import { OperatorError } from '../../base/operator-error.ts'
import { adminCommand } from '../admin-command.ts'
import { allInvites } from './operator-invites.ts'

export const inviteDisableCommand = adminCommand({
  summary: 'Disable an invite code.',
  parameters: ['<code>'],
  details: 'Accounts that signed up with it are not affected.',
  async run({ server, positionals: [code = ''] }) {
    // The method accepts unknown codes without an error, so check first that the code exists.
    if (!(await allInvites(server)).some((known) => known.code === code))
      throw new OperatorError(`there is no invite code ${code}`)
    await server.post('/xrpc/com.atproto.admin.disableInviteCodes', { codes: [code] })
    return { value: { code, disabled: true }, text: `${code} is disabled.` }
  },
})
