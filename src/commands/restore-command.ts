import { openContext } from '../app.ts'
import { openArchive } from '../features/backup/archive.ts'
import { continueSequence, fetchSnapshot, installDatabase } from '../features/backup/restoring.ts'
import { unsealOf } from '../features/backup/sealing.ts'
import { listSnapshots } from '../features/backup/snapshot.ts'
import { verifyEverything } from '../features/backup/verification.ts'
import { OperatorError } from '../platform/operator-error.ts'
import { type Command, EXIT } from './command.ts'
import { loadOrExplain } from './load-or-explain.ts'

export const restoreCommand: Command = {
  name: 'restore',
  summary: 'Bring a backup back into an empty data directory.',
  parameters: ['folder or s3://bucket/prefix', 'name of the backup'],
  details: `Takes the newest backup of the place unless one is named. Everything is checked before it takes effect: digests,
the database, every repository with its signature, every blob. Then the event log continues above any number that a
relay may have seen, and every repository is signed once more, so that relays follow on.

Blobs that are missing from the backup are listed; with blob_mirror configured the next start fetches them.`,
  options: { dev: { doc: 'Restore for "dev" instead of "serve".' } },
  async run({ terminal, positionals: [place, wanted], options }) {
    const config = loadOrExplain(terminal, options['dev'] === true ? 'dev' : 'serve', (warning) => terminal.err(`warning: ${warning}`))
    if (config === null) return EXIT.failed
    const from = place ?? config.backup.destination
    if (from === null) throw new OperatorError('say where the backups are, or set backup.destination')
    const archive = await openArchive(from, config)
    try {
      const snapshot = wanted ?? (await listSnapshots(archive)).at(-1)
      if (snapshot === undefined) throw new OperatorError('there are no backups at this place')
      const fetched = await fetchSnapshot(config, archive, await unsealOf(archive, config.backup.passphrase?.reveal() ?? null), snapshot)
      for (const cid of fetched.missingBlobs) terminal.err(`blob ${cid} is not in the backup`)

      const undos: (() => void | Promise<void>)[] = []
      try {
        const ctx = await openContext({ ...config, databaseUrl: fetched.databasePath }, {}, undos)
        const known = new Set(fetched.missingBlobs.map((cid) => `blob ${cid}: the file is missing`))
        let broken = 0
        const report = await verifyEverything(ctx, (fault) => {
          if (known.has(fault)) return
          broken++
          terminal.err(fault)
        })
        if (broken > 0) throw new OperatorError(`the backup is damaged in ${broken} places; nothing was put into effect`)
        const { seq, accounts } = await continueSequence(ctx)
        terminal.out(`${snapshot}: ${report.repos} repositories and ${report.blobs} blobs verified, ${accounts} accounts announced again, the log goes on at ${seq}`)
      } finally {
        for (const undo of undos.reverse()) await undo()
      }
      await installDatabase(config, fetched)
      return EXIT.ok
    } finally {
      archive.close()
    }
  },
}
