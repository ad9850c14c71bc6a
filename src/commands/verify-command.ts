import { withContext } from '../app.ts'
import { verifyEverything } from '../features/backup/backup.ts'
import { exitCodes } from './command.ts'
import { configured } from './configuration.ts'

export const verifyCommand = configured({
  name: 'verify',
  summary: 'Check every repository, signature, record and blob that is stored.',
  details: `Walks everything, prints each fault on a line of its own and exits with 1 if there was one. Changes nothing. The server
has to be stopped.

Each repository is read twice, the second time by the libraries of the reference implementation: an opinion that does
not depend on this program. With --quick it is read once.`,
  options: { quick: { doc: 'Leave out the second opinion on each repository.' } },
  async run({ terminal, config, options }) {
    const quick = options['quick'] === true
    const { repos, blobs, faults } = await withContext(config, (ctx) => verifyEverything(ctx, { onFault: terminal.err, quick }))
    terminal.out(`${repos} repositories and ${blobs} blobs verified, ${faults} faults`)
    return faults === 0 ? exitCodes.ok : exitCodes.failed
  },
})
