/** What the commands for app passwords share: the account holder's session, and how an app password is printed. */
import { Misuse, type Command, type Invocation, type Option } from '../command.ts'
import { NewServer, passwordOption, secret } from '../migrate/migrate-client.ts'

export const holderOptions = {
  server: { value: 'URL', doc: 'The server that hosts the account.' },
  json: { doc: 'Print JSON, for scripts.' },
  ...passwordOption,
} as const satisfies Record<string, Option>

export const SIGNS_IN = 'Signs in with the password of the account, which is prompted for.'

export interface AppPasswordView {
  name: string
  scope?: string
  privileged?: boolean
  createdAt: string
  expiresAt?: string
  lastUsedAt?: string
}

/** A command for the holder of the account in the first argument, signed in at the server that the options name. */
export const holderCommand = ({
  run,
  ...command
}: Omit<Command, 'run'> & { run(invocation: Invocation, server: NewServer): ReturnType<Command['run']> }): Command => ({
  ...command,
  options: { ...holderOptions, ...command.options },
  async run(invocation) {
    const { server } = invocation.options
    if (server === undefined) throw new Misuse('the server of the account is required: add --server')
    const { serverOrigin } = await import('../../base/server-request.ts')
    const client = new NewServer(serverOrigin(server))
    const account = invocation.positionals[0]!.replace(/^@/, '')
    await client.logIn(account, await secret(invocation, `Password at ${new URL(client.url).host}`))
    return run(invocation, client)
  },
})
