import { SOFTWARE } from '../../base/version.ts'
import { type Command, exitCodes } from '../command.ts'

export const versionCommand: Command = {
  summary: 'Print the version.',
  details: '/xrpc/_health reports the same version.',
  async run({ terminal }) {
    terminal.out(SOFTWARE)
    return exitCodes.ok
  },
}
