import { chosenFlag, type Invocation } from '../command.ts'
import { type Answer, adminCommand } from '../admin-command.ts'
import {
  findAccount,
  type FoundAccount,
  HOW_PASSWORDS_COME,
  nameOf,
  NAMED_BY,
  newPassword,
  passwordOptions,
} from './operator-accounts.ts'
import type { Server } from '../operator-server.ts'

/** How the holder receives a reset code, by the name of the option. */
const ways: Record<string, (account: FoundAccount, invocation: Invocation & { server: Server }) => Promise<Answer>> = {
  async mail(account, { server }) {
    await server.post(`/v1/admin/accounts/${encodeURIComponent(account.did)}/reset-mail`)
    return {
      value: { did: account.did, mailedTo: account.email },
      text: `A reset code was mailed to ${account.email}.`,
    }
  },
  async code({ did }, { server }) {
    const { token, expiresIn } = await server.post<{ token: string; expiresIn: number }>(
      `/v1/admin/accounts/${encodeURIComponent(did)}/reset-token`,
    )
    return {
      value: { did, code: token, expiresIn },
      text: `${token}\nThis code resets the password once, within ${expiresIn / 60} minutes.`,
    }
  },
}

export const accountResetPasswordCommand = adminCommand({
  summary: 'Set a new password for an account, or issue a code to reset it.',
  parameters: ['<account>'],
  details: `${NAMED_BY}
${HOW_PASSWORDS_COME}
A new password ends the sessions that the old one opened. With --mail or --code the old one stays valid until the code
is used.`,
  options: {
    ...passwordOptions,
    mail: { doc: 'Mail a reset code to the account.' },
    code: { doc: 'Print a reset code, to pass on to the account holder.' },
  },
  async run(invocation) {
    const {
      server,
      flags,
      positionals: [name = ''],
    } = invocation
    const way = ways[chosenFlag(flags, Object.keys({ ...passwordOptions, ...ways })) ?? '']
    const account = await findAccount(server, name)
    return way ? way(account, invocation) : setPassword(account, invocation)
  },
})

async function setPassword(account: FoundAccount, invocation: Invocation & { server: Server }): Promise<Answer> {
  const { did } = account
  const { password, generated } = await newPassword(invocation)
  await invocation.server.post('/xrpc/com.atproto.admin.updateAccountPassword', { did, password })
  const done = `${nameOf(account)} has a new password.`
  return generated === null
    ? { value: { did }, text: done }
    : { value: { did, password: generated }, text: `${done} It is shown only once:\n${generated}` }
}
