import { withContext } from '../app.ts'
import {
  continueSequence,
  fetchSnapshot,
  installDatabase,
  listSnapshots,
  openArchive,
  unsealOf,
  verifyEverything,
} from '../features/backup/backup.ts'
import { OperatorError } from '../base/operator-error.ts'
import { exitCodes, Misuse } from './command.ts'
import { configured } from './configuration.ts'

export const restoreCommand = configured({
  name: 'restore',
  summary: 'Bring a backup back into an empty data directory.',
  parameters: ['[folder or s3://bucket/prefix]', '[name of the backup]'],
  details: `Takes the newest backup of the place unless one is named. Everything is checked before it takes effect: digests,
the database, every repository with its signature, every blob. Then the event log continues above any number that a
relay may have seen, and every repository is signed once more, so that relays follow on.

Blobs that are missing from the backup are listed; with blob_mirror configured the next start fetches them.`,
  async run({ terminal, config, positionals: [place, wanted] }) {
    const from = place ?? config.backup.destination
    if (from === null) throw new Misuse('say where the backups are, or set backup.destination')
    const archive = openArchive(from, config)
    const snapshot = wanted ?? (await listSnapshots(archive)).at(-1)
    if (snapshot === undefined) throw new OperatorError('there are no backups at this place')
    const fetched = await fetchSnapshot(config, archive, await unsealOf(archive, config.backup.passphrase?.reveal() ?? null), snapshot)
    for (const cid of fetched.missingBlobs) terminal.err(`blob ${cid} is not in the backup`)

    await withContext({ ...config, databaseUrl: fetched.databasePath }, async (ctx) => {
      const { repos, blobs, faults } = await verifyEverything(ctx, {
        onFault: terminal.err,
        lostBlobs: new Set(fetched.missingBlobs),
        quick: true,
      })
      if (faults > 0) throw new OperatorError(`the backup is damaged in ${faults} places; nothing was put into effect`)
      const { seq, accounts } = await continueSequence(ctx)
      terminal.out(
        `${snapshot}: ${repos} repositories and ${blobs} blobs verified, ${accounts} accounts announced again, the log goes on at ${seq}`,
      )
    })
    await installDatabase(config, fetched)
    return exitCodes.ok
  },
})
