import { SOFTWARE } from '../base/version.ts'
import { type Command, exitCodes } from './command.ts'

export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the version.',
  details: 'The same text stands in the answer of /xrpc/_health.',
  async run({ terminal }) {
    terminal.out(SOFTWARE)
    return exitCodes.ok
  },
}
