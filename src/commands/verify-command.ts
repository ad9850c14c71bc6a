import { withContext } from '../app.ts'
import { verifyEverything } from '../features/backup/backup.ts'
import { exitCodes } from './command.ts'
import { configured } from './configuration.ts'

export const verifyCommand = configured({
  name: 'verify',
  summary: 'Check every repository, signature, record and blob that is stored.',
  details: `Walks everything, prints each fault on a line of its own and exits with 1 if there was one. Changes nothing. The server
has to be stopped.`,
  async run({ terminal, config }) {
    const { repos, blobs, faults } = await withContext(config, (ctx) => verifyEverything(ctx, { onFault: terminal.err }))
    terminal.out(`${repos} repositories and ${blobs} blobs verified, ${faults} faults`)
    return faults === 0 ? exitCodes.ok : exitCodes.failed
  },
})
