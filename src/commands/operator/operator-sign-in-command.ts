import { adminCommand } from '../admin-command.ts'
import { passwordOption, secret } from '../prompts.ts'

interface Opened {
  token: string
  did: string
  role: string
  expiresInSecs: number
  idleSecs: number
}

export const operatorSignInCommand = adminCommand({
  isOpen: true,
  summary: 'Sign in with an account that has a role, and print the token of a session.',
  parameters: ['<account>'],
  details: `Commands take the token in place of the admin token, and may do what the role permits. For dangerous acts, such as
deleting an account, the password must have been entered in the last ten minutes: sign in again.

The session ends after half an hour without a command, after eight hours, and when the role or the password changes.
Asks for the password, unless --password-stdin is given.`,
  options: {
    ...passwordOption,
    code: { value: 'CODE', doc: 'Code of the second factor of the account. It works once.' },
  },
  async run(invocation) {
    const {
      server,
      positionals: [account = ''],
      options,
    } = invocation
    const opened = await server.postAsHolder<Opened>('/v1/admin/sessions', {
      account,
      password: await secret(invocation, 'Password'),
      authFactorToken: options['code'],
    })
    return { value: opened, text: opened.token }
  },
})
