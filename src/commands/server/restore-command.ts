import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withContext } from '../../app.ts'
import {
  agreeOnDatabase,
  continueSequence,
  copyServer,
  fetchSnapshot,
  installDatabase,
  listSnapshots,
  openArchive,
  releaseTarget,
  rehearse,
  requireFreeDatabase,
  unsealOf,
  verifyEverything,
  whileStopped,
  type Archive,
  type Counts,
  type Fetched,
  type Rehearsal,
  type Unseal,
} from '../../features/operations/backup/backup.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import type { Context } from '../../platform/context.ts'
import { isPostgresUrl } from '../../platform/database/database-url.ts'
import { databaseFiles } from '../../platform/files/data-directory.ts'
import { bytes, facts, table, tellResult } from '../report.ts'
import { exitCodes, Misuse, type ExitCode, type Invocation } from '../command.ts'
import { commandLog, configured, jsonOption } from '../configuration.ts'

type Given = Invocation & { config: Config }

export const restoreCommand = configured({
  summary: 'Restore a backup into an empty data directory, or an empty PostgreSQL database.',
  parameters: ['[folder or s3://bucket/prefix]', '[name of the backup]'],
  details: `Restores the newest backup unless one is named. Verifies everything before it takes effect: digests, the
database, every repository with its signature, and every blob. Then continues the event log above any sequence number
that a relay may have seen, and signs every repository again, so that relays keep following the server.

If database_url names a PostgreSQL database, which has to be empty, the backup is copied to it: it makes no difference
which of the two databases it was made of. No server starts with a database that is not restored completely. After an
interruption, run the same command again.

Lists the blobs that are missing from the backup. If blob_mirror is configured, the next start fetches them.
Blobs in a bucket (blobs.store) stay there, and blobs that only the backup has are uploaded to it.

With --rehearse it restores into a scratch folder instead, verifies everything, compares the numbers of accounts,
records and blobs with those of the server, prints what a restore needs besides the backup, and deletes the folder.
The server may be running: its data stays unchanged, and relays learn nothing. Exits with 1 if anything is damaged or
missing. "holdfast doctor" tells when the last rehearsal was.

Use --database-restored after PostgreSQL's own tools have restored the database to an earlier time, or a standby was
promoted that may lack the last changes. It verifies the database, and continues the event log in the same way. Exits
with 1 if there are faults. No server may be running. Add --nothing-lost if the database lacks nothing, for example
after an upgrade of PostgreSQL: it then verifies nothing, and leaves no gap in the event log.`,
  options: {
    rehearse: { doc: 'Restore into a scratch folder, report, and delete it.' },
    scratch: { value: 'FOLDER', doc: "With --rehearse: make the folder there, not in the system's temporary folder." },
    quick: { doc: 'With --rehearse: skip the second, independent reading of each repository.' },
    ...jsonOption,
    'database-restored': {
      doc: 'Restore nothing, but verify the configured PostgreSQL database and continue its event log.',
    },
    'nothing-lost': { doc: 'With --database-restored: the database has everything that it had acknowledged.' },
  },
  async run(invocation) {
    const { config, options } = invocation
    const [place, wanted] = invocation.positionals
    if (options['database-restored'] === true) {
      if (place !== undefined || !isPostgresUrl(config.databaseUrl))
        throw new Misuse('--database-restored takes no backup, and needs a postgres:// URL in database_url')
      return (options['nothing-lost'] === true ? keepHistory : continueRestored)(invocation)
    }
    if (options['nothing-lost'] === true) throw new Misuse('--nothing-lost is for --database-restored only')
    for (const name of ['scratch', 'quick'])
      if (options[name] !== undefined && options['rehearse'] !== true)
        throw new Misuse(`--${name} is for --rehearse only`)
    const from = place ?? config.backup.destination
    if (from === null) throw new Misuse('name the location of the backups, or set backup.destination')
    const archive = openArchive(from, config)
    const snapshot = wanted ?? (await listSnapshots(archive)).at(-1)
    if (snapshot === undefined) throw new OperatorError('there are no backups at this destination')
    const unseal = await unsealOf(archive, config.backup.passphrase?.reveal() ?? null)
    if (options['rehearse'] === true) {
      const { scratch } = options
      const log = commandLog({ ...invocation, options: { json: true } }, config)
      const report = await rehearse({
        config,
        archive,
        unseal,
        snapshot,
        scratch: typeof scratch === 'string' ? scratch : tmpdir(),
        onFolder: deleteIfInterrupted,
        quick: options['quick'] === true,
        now: new Date(),
        log,
        withContext: (restored, work) => withContext(restored, work, { log }),
      })
      tellResult(invocation, report, rehearsalText(report))
      return report.ok ? exitCodes.ok : exitCodes.failed
    }
    if (isPostgresUrl(config.databaseUrl)) return restoreIntoPostgres(invocation, archive, unseal, snapshot)
    const fetched = await fetchSnapshot(config, archive, unseal, snapshot)
    nameMissing(invocation, fetched)
    const restored = { ...config, databaseUrl: fetched.databasePath }
    const log = commandLog(invocation, config)
    const done = await withContext(restored, (ctx) => verifyAndContinue(ctx, invocation, fetched), { log })
    await installDatabase(config, fetched)
    tellRestored(invocation, snapshot, fetched, done)
    return exitCodes.ok
  },
})

const nameMissing = ({ config: { blobs }, terminal }: Given, { missingBlobs }: Fetched): void => {
  for (const cid of missingBlobs)
    terminal.err(`blob ${cid} is not in the ${blobs.store === 's3' ? 'bucket' : 'backup'}`)
}

/**
 * Fetches the backup, which is a file of SQLite, beside the blobs, and copies it to the database, in which no server
 * starts until everything is verified. If it is interrupted, the same command starts over.
 */
async function restoreIntoPostgres(
  invocation: Given,
  archive: Archive,
  unseal: Unseal,
  snapshot: string,
): Promise<ExitCode> {
  const { config, terminal } = invocation
  const log = commandLog(invocation, config)
  await requireFreeDatabase(config.databaseUrl)
  const fetched = await fetchSnapshot(
    { ...config, databaseUrl: join(config.dataDir, 'restored.db') },
    archive,
    unseal,
    snapshot,
  )
  nameMissing(invocation, fetched)
  const from = { ...config, databaseUrl: fetched.databasePath }
  const done = await whileStopped({ from, to: config }, async () => {
    await copyServer({
      from,
      to: config,
      log,
      onProgress: (what) => terminal.err(`copied ${what}`),
    })
    const restored = await withContext(config, (ctx) => verifyAndContinue(ctx, invocation, fetched), {
      isLocked: true,
      isCopyTarget: true,
      log,
    })
    await releaseTarget({ to: config })
    return restored
  })
  for (const path of databaseFiles(fetched.databasePath)) await rm(path, { force: true })
  tellRestored(invocation, snapshot, fetched, done)
  return exitCodes.ok
}

/** What was verified, and where the event log continues. */
interface Restored {
  repos: number
  blobs: number
  accounts: number
  seq: number
}

/** Throws `OperatorError` if anything is damaged. */
async function verifyAndContinue(ctx: Context, { terminal }: Given, { missingBlobs }: Fetched): Promise<Restored> {
  const { repos, blobs, faults } = await verifyEverything(ctx, {
    onFault: terminal.err,
    lostBlobs: new Set(missingBlobs),
    quick: true,
  })
  if (faults > 0) throw new OperatorError(`the backup has ${faults} faults; nothing was restored`)
  return { repos, blobs, ...(await continueSequence(ctx)) }
}

const tellRestored = (invocation: Given, snapshot: string, { missingBlobs }: Fetched, restored: Restored): void => {
  const { repos, blobs, accounts, seq } = restored
  const text = `${snapshot}: ${repos} repositories and ${blobs} blobs verified, ${accounts} accounts announced again, event log continues at ${seq}`
  tellResult(invocation, { snapshot, repos, blobs, accounts, seq, missingBlobs }, text)
}

/** The folder holds everything that the backup does, decrypted. */
function deleteIfInterrupted(folder: string): () => void {
  const end = () => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(exitCodes.interrupted)
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, end)
  return () => signals.forEach((signal) => process.off(signal, end))
}

function rehearsalText(report: Rehearsal): string {
  const { snapshot, createdAt, restored, live } = report
  const row = (name: string, of: (counts: Counts) => number) => [
    name,
    String(of(restored)),
    live === null ? 'unknown' : String(of(live)),
  ]
  return [
    facts({
      backup: `${snapshot} of ${createdAt}`,
      database: bytes(report.databaseBytes),
      blobs: bytes(report.blobBytes),
      restored: `in ${report.restoreSecs} s`,
      verified: `in ${report.verifySecs} s`,
    }),
    table(
      ['', 'BACKUP', 'SERVER'],
      [
        row('accounts', ({ accounts }) => accounts),
        row('records', ({ records }) => records),
        row('blobs', ({ blobs }) => blobs),
        row('newest event', ({ newestEvent }) => newestEvent),
      ],
    ),
    ...report.faults.map((fault) => `damaged: ${fault}`),
    ...report.missingBlobs.map((cid) => `missing: blob ${cid}`),
    'Besides the backup, a restore needs:',
    ...report.needed.map((what) => `- ${what}`),
    report.ok
      ? 'The backup can be restored.'
      : `The backup has ${report.faultCount} faults and lacks ${report.missingBlobCount} blobs.`,
  ].join('\n')
}

/**
 * Blobs that were deleted since are faults, but no reason to leave relays with events that the database no longer
 * knows.
 */
const continueRestored = (invocation: Given): Promise<ExitCode> =>
  withContext(
    invocation.config,
    async (ctx) => {
      const { repos, blobs, faults } = await verifyEverything(ctx, { onFault: invocation.terminal.err, quick: true })
      const { seq, accounts } = await continueSequence(ctx)
      const verified = `${repos} repositories and ${blobs} blobs verified, ${faults} faults`
      const text = `${verified}; ${accounts} accounts announced again, event log continues at ${seq}`
      tellResult(invocation, { repos, blobs, faults, accounts, seq }, text)
      return faults > 0 ? exitCodes.failed : exitCodes.ok
    },
    onRestored(invocation),
  )

const keepHistory = (invocation: Given): Promise<ExitCode> =>
  withContext(
    invocation.config,
    async (ctx) => {
      const seq = await agreeOnDatabase(ctx)
      tellResult(invocation, { seq }, `nothing was changed; the event log continues after ${seq}`)
      return exitCodes.ok
    },
    onRestored(invocation),
  )

const onRestored = (invocation: Given) => ({
  sharesDatabase: false,
  mayLackHistory: true,
  log: commandLog(invocation, invocation.config),
})
