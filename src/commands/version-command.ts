import { SOFTWARE } from '../base/version.ts'
import { type Command, exitCodes } from './command.ts'

export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the version.',
  details: 'The response of /xrpc/_health contains the same text.',
  async run({ terminal }) {
    terminal.out(SOFTWARE)
    return exitCodes.ok
  },
}
