import { exitCodes, type Command } from '../command.ts'
import { whileSignedIn } from '../holder-server.ts'
import { passwordOption } from '../prompts.ts'
import { newServer, serverOption, tellMove } from './migrate-client.ts'

export const migrateStatusCommand: Command = {
  summary: 'Show how far the move of an account is, and what it is waiting for.',
  parameters: ['<handle or DID>'],
  details: 'Signs in at the new server with the password that the account has there.',
  options: { ...serverOption, ...passwordOption },
  async run(invocation) {
    const server = await newServer(invocation)
    await tellMove(invocation, await whileSignedIn(invocation, server, () => server.move()))
    return exitCodes.ok
  },
}
