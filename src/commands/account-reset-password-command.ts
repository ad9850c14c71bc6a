import { chosenOption, type Invocation } from './command.ts'
import { type Answer, operated } from './operated.ts'
import { findAccount, type FoundAccount, HOW_PASSWORDS_COME, nameOf, NAMED_BY, newPassword, passwordOptions } from './operator-accounts.ts'
import type { Server } from './operator-server.ts'

/** How the holder receives a reset code, by the name of the option. */
const ways: Record<string, (account: FoundAccount, invocation: Invocation & { server: Server }) => Promise<Answer>> = {
  async mail(account, { server }) {
    await server.post(`/v1/admin/accounts/${encodeURIComponent(account.did)}/reset-mail`)
    return { value: { did: account.did, mailedTo: account.email }, text: `A code to reset the password was mailed to ${account.email}.` }
  },
  async code({ did }, { server }) {
    const { token, expiresIn } = await server.post<{ token: string; expiresIn: number }>(
      `/v1/admin/accounts/${encodeURIComponent(did)}/reset-token`,
    )
    return { value: { did, code: token, expiresIn }, text: `${token}\nresets the password once, in the next ${expiresIn / 60} minutes.` }
  },
}

export const accountResetPasswordCommand = operated({
  name: 'account reset-password',
  summary: 'Give an account a new password, or a code to set one.',
  parameters: ['<account>'],
  details: `${NAMED_BY} ${HOW_PASSWORDS_COME}
A new password signs out whoever came in with the old one. With --mail or --code the old one holds until the code is used.`,
  options: {
    ...passwordOptions,
    mail: { doc: 'Mail a reset code to the account.' },
    code: { doc: 'Print a reset code, to be passed on to the holder.' },
  },
  async run(invocation) {
    const {
      server,
      options,
      positionals: [name = ''],
    } = invocation
    const way = ways[chosenOption(options, Object.keys({ ...passwordOptions, ...ways })) ?? '']
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
    : { value: { did, password: generated }, text: `${done} Shown this once:\n${generated}` }
}
