import { SOFTWARE } from '../../base/version.ts'
import { type Command, exitCodes } from '../command.ts'

export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the version.',
  details: '/xrpc/_health reports the same version.',
  async run({ terminal }) {
    terminal.out(SOFTWARE)
    return exitCodes.ok
  },
}
