/** What the commands for app passwords share: the session of the account holder, and what the server returns. */
import type { Answer } from '../admin-command.ts'
import { exitCodes, type Command, type Invocation } from '../command.ts'
import { HolderServer, serverUrl, whileSignedIn } from '../holder-server.ts'
import { passwordOption } from '../prompts.ts'
import { jsonOption, tellResult } from '../report.ts'

export const SIGNS_IN = 'Signs in with the password of the account, which is prompted for.'

export interface AppPasswordView {
  name: string
  scope?: string
  privileged?: boolean
  createdAt: string
  expiresAt?: string
  lastUsedAt?: string
}

interface HolderCommand extends Omit<Command, 'run'> {
  run(invocation: Invocation, server: HolderServer): Promise<Answer>
}

/** A command for the holder of the account in the first argument, signed in at the server that the options name. */
export const holderCommand = ({ run, ...command }: HolderCommand): Command => ({
  ...command,
  options: {
    server: { value: 'URL', doc: 'The server that hosts the account.' },
    ...jsonOption,
    ...passwordOption,
    ...command.options,
  },
  async run(invocation) {
    const server = new HolderServer(await serverUrl(invocation))
    return whileSignedIn(invocation, server, async () => {
      const { value, text } = await run(invocation, server)
      // Printed at once: an app password is shown only here, and the end of the session may fail or take long.
      tellResult(invocation, value, text)
      return exitCodes.ok
    })
  },
})
