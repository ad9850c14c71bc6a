import { openContext } from '../app.ts'
import { verifyEverything } from '../features/backup/verification.ts'
import { type Command, EXIT } from './command.ts'
import { loadOrExplain } from './load-or-explain.ts'

export const verifyCommand: Command = {
  name: 'verify',
  summary: 'Check every repository, signature, record and blob that is stored.',
  details: `Walks everything, prints each fault on a line of its own and exits with 1 if there was one. Changes nothing. The server
has to be stopped.`,
  options: { dev: { doc: 'Verify the data of "dev" instead of "serve".' } },
  async run({ terminal, options }) {
    const config = loadOrExplain(terminal, options['dev'] === true ? 'dev' : 'serve', (warning) => terminal.err(`warning: ${warning}`))
    if (config === null) return EXIT.failed
    const undos: (() => void | Promise<void>)[] = []
    try {
      const ctx = await openContext(config, {}, undos)
      const { repos, blobs, faults } = await verifyEverything(ctx, (fault) => terminal.err(fault))
      terminal.out(`${repos} repositories and ${blobs} blobs verified, ${faults} faults`)
      return faults === 0 ? EXIT.ok : EXIT.failed
    } finally {
      for (const undo of undos.reverse()) await undo()
    }
  },
}
