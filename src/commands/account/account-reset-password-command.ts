import { chosenFlag, type Invocation } from '../command.ts'
import type { Answer } from '../admin-command.ts'
import { HOW_PASSWORDS_COME, newPassword, newPasswordOptions } from '../prompts.ts'
import { type AboutAccount, accountCommand, nameOf } from './operator-accounts.ts'

/** How the holder receives a reset code, by the name of the option. */
const ways: Record<string, (about: AboutAccount) => Promise<Answer>> = {
  async mail({ server, account, path }) {
    await server.post(`${path}/reset-mail`)
    return {
      value: { did: account.did, mailedTo: account.email },
      text: `A reset code was mailed to ${account.email}.`,
    }
  },
  async code({ server, account, path }) {
    const { token, expiresIn } = await server.post<{ token: string; expiresIn: number }>(`${path}/reset-token`)
    return {
      value: { did: account.did, code: token, expiresIn },
      text: `${token}\nThis code resets the password once, within ${expiresIn / 60} minutes.`,
    }
  },
}

export const accountResetPasswordCommand = accountCommand({
  summary: 'Set a new password for an account, or issue a code to reset it.',
  details: `${HOW_PASSWORDS_COME}
A new password ends the sessions that the old one opened. With --mail or --code the old one stays valid until the code
is used.`,
  options: {
    ...newPasswordOptions,
    mail: { doc: 'Mail a reset code to the account.' },
    code: { doc: 'Print a reset code, to pass on to the account holder.' },
  },
  async run(invocation) {
    const way = ways[chosenFlag(invocation.flags, Object.keys({ ...newPasswordOptions, ...ways })) ?? '']
    return way ? way(invocation) : setPassword(invocation)
  },
})

async function setPassword(invocation: Invocation & AboutAccount): Promise<Answer> {
  const { server, account } = invocation
  const { did } = account
  const { password, generated } = await newPassword(invocation)
  await server.post('/xrpc/com.atproto.admin.updateAccountPassword', { did, password })
  const done = `${nameOf(account)} has a new password.`
  return generated === null
    ? { value: { did }, text: done }
    : { value: { did, password: generated }, text: `${done} It is shown only once:\n${generated}` }
}
