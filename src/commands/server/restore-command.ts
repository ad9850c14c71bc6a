import { withContext } from '../../app.ts'
import {
  agreeOnDatabase,
  continueSequence,
  fetchSnapshot,
  installDatabase,
  listSnapshots,
  openArchive,
  unsealOf,
  verifyEverything,
} from '../../features/operations/backup/backup.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { isPostgresUrl } from '../../platform/database/database-url.ts'
import { exitCodes, Misuse, type ExitCode, type Terminal } from '../command.ts'
import { configured } from '../configuration.ts'

export const restoreCommand = configured({
  name: 'restore',
  summary: 'Restore a backup into an empty data directory.',
  parameters: ['[folder or s3://bucket/prefix]', '[name of the backup]'],
  details: `Restores the newest backup unless one is named. Verifies everything before it takes effect: digests, the
database, every repository with its signature, and every blob. Then continues the event log above any sequence number
that a relay may have seen, and signs every repository again, so that relays keep following the server.

Lists the blobs that are missing from the backup. If blob_mirror is configured, the next start fetches them.
Blobs in a bucket (blobs.store) stay there, and blobs that only the backup has are uploaded to it.

Use --database-restored after PostgreSQL's own tools have restored the database to an earlier time, or a standby was
promoted that may lack the last changes. It verifies the database, and continues the event log in the same way. Exits
with 1 if there are faults. No server may be running. Add --nothing-lost if the database lacks nothing, for example
after an upgrade of PostgreSQL: it then verifies nothing, and leaves no gap in the event log.`,
  options: {
    'database-restored': {
      doc: 'Restore nothing, but verify the configured PostgreSQL database and continue its event log.',
    },
    'nothing-lost': { doc: 'With --database-restored: the database has everything that it had acknowledged.' },
  },
  async run({ terminal, config, positionals: [place, wanted], options }) {
    if (options['database-restored'] === true) {
      if (place !== undefined || !isPostgresUrl(config.databaseUrl))
        throw new Misuse('--database-restored takes no backup, and needs a postgres:// URL in database_url')
      return (options['nothing-lost'] === true ? keepHistory : continueRestored)(config, terminal)
    }
    if (options['nothing-lost'] === true) throw new Misuse('--nothing-lost is for --database-restored only')
    const from = place ?? config.backup.destination
    if (from === null) throw new Misuse('name the location of the backups, or set backup.destination')
    const archive = openArchive(from, config)
    const snapshot = wanted ?? (await listSnapshots(archive)).at(-1)
    if (snapshot === undefined) throw new OperatorError('there are no backups at this destination')
    const fetched = await fetchSnapshot(
      config,
      archive,
      await unsealOf(archive, config.backup.passphrase?.reveal() ?? null),
      snapshot,
    )
    for (const cid of fetched.missingBlobs)
      terminal.err(`blob ${cid} is not in the ${config.blobs.store === 's3' ? 'bucket' : 'backup'}`)

    await withContext({ ...config, databaseUrl: fetched.databasePath }, async (ctx) => {
      const { repos, blobs, faults } = await verifyEverything(ctx, {
        onFault: terminal.err,
        lostBlobs: new Set(fetched.missingBlobs),
        quick: true,
      })
      if (faults > 0) throw new OperatorError(`the backup has ${faults} faults; nothing was restored`)
      const { seq, accounts } = await continueSequence(ctx)
      terminal.out(
        `${snapshot}: ${repos} repositories and ${blobs} blobs verified, ${accounts} accounts announced again, event log continues at ${seq}`,
      )
    })
    await installDatabase(config, fetched)
    return exitCodes.ok
  },
})

/**
 * Blobs that were deleted since are faults, but no reason to leave relays with events that the database no longer
 * knows.
 */
const continueRestored = (config: Config, terminal: Terminal): Promise<ExitCode> =>
  withContext(
    config,
    async (ctx) => {
      const { repos, blobs, faults } = await verifyEverything(ctx, { onFault: terminal.err, quick: true })
      const { seq, accounts } = await continueSequence(ctx)
      const verified = `${repos} repositories and ${blobs} blobs verified, ${faults} faults`
      terminal.out(`${verified}; ${accounts} accounts announced again, event log continues at ${seq}`)
      return faults > 0 ? exitCodes.failed : exitCodes.ok
    },
    { sharesDatabase: false, mayLackHistory: true },
  )

const keepHistory = (config: Config, terminal: Terminal): Promise<ExitCode> =>
  withContext(
    config,
    async (ctx) => {
      terminal.out(`nothing was changed; the event log continues after ${await agreeOnDatabase(ctx)}`)
      return exitCodes.ok
    },
    { sharesDatabase: false, mayLackHistory: true },
  )
