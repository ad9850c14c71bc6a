import { adminCommand } from '../admin-command.ts'
import { Misuse } from '../command.ts'

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
    'password-stdin': { doc: 'Read the password from the next line of standard input.' },
    code: { value: 'CODE', doc: 'Code of the second factor of the account. It works once.' },
  },
  async run({ server, terminal, positionals: [account = ''], options, flags }) {
    const fromInput = flags.has('password-stdin')
    if (!fromInput && !terminal.isInteractive)
      throw new Misuse('there is no terminal to prompt for the password: add --password-stdin')
    const password = fromInput ? await terminal.nextLine() : await terminal.ask('Password: ', { hidden: true })
    const opened = await server.postAsHolder<Opened>('/v1/admin/sessions', {
      account,
      password: password ?? '',
      authFactorToken: options['code'],
    })
    return { value: opened, text: opened.token }
  },
})
