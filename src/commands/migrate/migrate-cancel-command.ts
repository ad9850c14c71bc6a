import { exitCodes, type Command } from '../command.ts'
import { tellResult } from '../report.ts'
import { whileSignedIn } from '../holder-server.ts'
import { passwordOption } from '../prompts.ts'
import { newServer, serverOption } from './migrate-client.ts'

export const migrateCancelCommand: Command = {
  summary: 'Give up the move of an account.',
  parameters: ['<handle or DID>'],
  details: `Deletes what the new server has fetched. The account at the old server stays as it is. Signs in at the new server with
the password that the account has there. A move whose identity has been changed cannot be cancelled: it completes by
itself.`,
  options: { ...serverOption, ...passwordOption },
  async run(invocation) {
    const server = await newServer(invocation)
    await whileSignedIn(invocation, server, () => server.delete('/v1/move-in'))
    tellResult(invocation, { cancelled: true }, 'Cancelled.')
    return exitCodes.ok
  },
}
