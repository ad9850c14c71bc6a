import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withContext } from '../../app.ts'
import {
  agreeOnDatabase,
  continueSequence,
  copyServer,
  fetchInstant,
  fetchSnapshot,
  installDatabase,
  newestSnapshots,
  openArchive,
  releaseTarget,
  rehearse,
  unsealOf,
  verifyEverything,
  whileRestoring,
  type Fetched,
  type Rehearsal,
} from '../../features/operations/backup/backup.ts'
import { rawParts } from '../../features/data/repo/repo.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import type { Context } from '../../platform/context.ts'
import { isPostgresUrl } from '../../platform/database/database-url.ts'
import { databaseFiles } from '../../platform/files/data-directory.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { bytes, facts, jsonOption, table, tellResult } from '../report.ts'
import { exitCodes, Misuse, type ExitCode, type Invocation } from '../command.ts'
import { commandLog, configured } from '../configuration.ts'
import { describeFailure } from '../failure-words.ts'
import { deleteIfInterrupted } from '../stop-signals.ts'

type Given = Invocation & { config: Config }

export const restoreCommand = configured({
  summary: 'Restore a backup into an empty data directory, or an empty PostgreSQL database.',
  parameters: ['[folder or s3://bucket/prefix]', '[name of the backup]'],
  details: `Restores the newest backup of this server unless one is named. Verifies everything before it takes effect:
digests, the database, every repository with its signature, and every blob. Then continues the event log above any
sequence number that a relay may have seen, and signs every repository again, so that relays keep following the server.

If database_url names a PostgreSQL database, which has to be empty, the backup is copied to it: it makes no difference
which of the two databases it came from. No server starts with an incompletely restored database. If reads of the backup
fail, it tries again for ten minutes. After an interruption, run the same command again: it keeps blobs that are whole,
and the database of the same backup.

Lists the blobs that are missing from the backup. If blob_mirror is configured, the next start fetches them.
Blobs in a bucket (blobs.store) stay there, and blobs that only the backup has are uploaded to it.

With --at it restores from a continuous backup (backup.continuous): the newest base before the instant, and what was
committed until then. An instant after the last commit restores all that the backup has. If a part that is needed is
missing or damaged, it names the part and restores nothing. Blobs come from the backups at the same location.

Blobs that the backup lacks come from backup.destination, if that is another location and has them.

With --rehearse it restores into a scratch folder instead, verifies everything, compares the numbers of accounts,
records and blobs with those of the server, prints what a restore needs besides the backup, and deletes the folder.
The server may be running: its data stays unchanged, and relays learn nothing. Exits with 1 if anything is damaged or
missing. "holdfast doctor" says when the last rehearsal was.

Use --database-restored after PostgreSQL's own tools have restored the database to an earlier time, or a standby was
promoted that may lack the last changes. It verifies the database, and continues the event log in the same way. Exits
with 1 if there are faults. No server may be running. Add --nothing-lost if the database lacks nothing, for example
after an upgrade of PostgreSQL: it then verifies nothing, and leaves no gap in the event log.`,
  options: {
    at: {
      value: 'INSTANT',
      doc: 'Restore the state at an instant (2026-11-23T10:15:00Z) from the continuous backup. Default location: backup.continuous.',
    },
    rehearse: { doc: 'Restore into a scratch folder, report, and delete it.' },
    scratch: {
      value: 'FOLDER',
      doc: "With --rehearse: create the folder there, not in the system's temporary folder.",
    },
    quick: { doc: 'With --rehearse: skip the second, independent reading of each repository.' },
    ...jsonOption,
    'database-restored': {
      doc: 'Restore nothing, but verify the configured PostgreSQL database and continue its event log.',
    },
    'nothing-lost': { doc: 'With --database-restored: the database has everything that it had acknowledged.' },
  },
  async run(invocation) {
    const { config, options, flags } = invocation
    const [place, wanted] = invocation.positionals
    if (flags.has('database-restored')) {
      if (place !== undefined || !isPostgresUrl(config.databaseUrl))
        throw new Misuse(
          '--database-restored cannot be used with a backup, and needs a postgres:// URL in database_url',
        )
      return (flags.has('nothing-lost') ? keepHistory : continueRestored)(invocation)
    }
    if (flags.has('nothing-lost')) throw new Misuse('--nothing-lost is for --database-restored only')
    for (const name of ['scratch', 'quick'])
      if ((options[name] !== undefined || flags.has(name)) && !flags.has('rehearse'))
        throw new Misuse(`--${name} is for --rehearse only`)
    const at = instantOf(options['at'])
    if (at !== null && (wanted !== undefined || flags.has('rehearse')))
      throw new Misuse('--at cannot be used with the name of a backup, or with --rehearse')
    const from = place ?? (at === null ? config.backup.destination : config.backup.continuous)
    if (from === null)
      throw new Misuse(
        `name the location of the backups, or set ${at === null ? 'backup.destination' : 'backup.continuous'}`,
      )
    const archive = openArchive(from, config, { tell: invocation.terminal.err })
    const unsealed = () => unsealOf(archive, config.backup.passphrase)
    if (at !== null) {
      const unseal = await unsealed()
      return restoreFetched(invocation, async (target) => {
        const others = await otherBackups(invocation, from)
        const now = invocation.terminal.now()
        const {
          from: name,
          at: restoredAt,
          remark,
          ...fetched
        } = await fetchInstant(target, archive, unseal, { at, now, others })
        if (remark !== null) invocation.terminal.err(remark)
        return { ...fetched, name: `${new Date(restoredAt).toISOString()} (${name})` }
      })
    }
    const { own, any } =
      wanted === undefined
        ? await newestSnapshots(archive, config, { now: invocation.terminal.now() })
        : { own: wanted }
    const snapshot = own ?? any
    if (snapshot === undefined) throw new OperatorError('there are no backups at this destination')
    const unseal = await unsealed()
    if (flags.has('rehearse')) {
      const log = commandLog({ ...invocation, flags: new Set(['json']) }, config)
      const report = await rehearse({
        config,
        archive,
        unseal,
        snapshot,
        scratch: options['scratch'] ?? tmpdir(),
        onFolder: deleteIfInterrupted,
        quick: flags.has('quick'),
        now: new Date(),
        log,
        withContext: (restored, work) => withContext(restored, work, { log }),
      })
      tellResult(invocation, report, rehearsalText(report))
      return report.ok ? exitCodes.ok : exitCodes.failed
    }
    return restoreFetched(invocation, async (target) => ({
      ...(await fetchSnapshot(target, archive, unseal, snapshot, { others: await otherBackups(invocation, from) })),
      name: snapshot,
      seq: 0,
    }))
  },
})

/**
 * Returns the backups of `backup.destination`, for blobs that those at `from` lack. If they cannot be read, says why
 * and returns null: the restore takes what there is, and names the missing blobs.
 */
async function otherBackups({ config, terminal }: Given, from: string) {
  const { destination, passphrase } = config.backup
  if (destination === null || destination === from) return null
  try {
    const archive = openArchive(destination, config, { tell: terminal.err })
    return { archive, unseal: await unsealOf(archive, passphrase) }
  } catch (error) {
    terminal.err(`no blobs come from backup.destination (${destination}): ${describeFailure(error)}`)
    return null
  }
}

/** The value of `--at` in milliseconds, or null. */
function instantOf(value: string | undefined): Millis | null {
  if (value === undefined) return null
  if (!instantForm.test(value) || Number.isNaN(Date.parse(value)))
    throw new Misuse('--at takes an instant in RFC 3339 format, such as 2026-11-23T10:15:00Z')
  return Date.parse(value)
}

const instantForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/

/** A fetched backup, with the name that the operator sees. */
interface Named extends Fetched {
  name: string
  /** An event number that is known to have been used. */
  seq: number
}

/** Fetches the backup into the data directory of a configuration. */
type Fetch = (target: Config) => Promise<Named>

const restoreFetched = (invocation: Given, fetch: Fetch): Promise<ExitCode> =>
  whileRestoring(invocation.config, () =>
    (isPostgresUrl(invocation.config.databaseUrl) ? restoreIntoPostgres : restoreFile)(invocation, fetch),
  )

async function restoreFile(invocation: Given, fetch: Fetch): Promise<ExitCode> {
  const { config } = invocation
  const fetched = await fetch(config)
  nameMissing(invocation, fetched)
  const restored = { ...config, databaseUrl: fetched.databasePath }
  const done = await withContext(restored, (ctx) => verifyAndContinue(ctx, invocation, fetched), {
    isLocked: true,
    log: commandLog(invocation, config),
  })
  await installDatabase(config, fetched)
  tellRestored(invocation, fetched, done)
  return exitCodes.ok
}

const nameMissing = ({ config: { blobs }, terminal }: Given, { missingBlobs }: Fetched): void => {
  for (const cid of missingBlobs)
    terminal.err(`blob ${cid} is not in the ${blobs.store === 's3' ? 'bucket' : 'backup'}`)
}

/**
 * Fetch the backup as an SQLite file, beside the blobs, and copy it into the PostgreSQL database. No server starts in
 * that database until everything is verified. If this is interrupted, the same command starts over.
 */
async function restoreIntoPostgres(invocation: Given, fetch: Fetch): Promise<ExitCode> {
  const { config, terminal } = invocation
  const log = commandLog(invocation, config)
  const fetched = await fetch({ ...config, databaseUrl: join(config.dataDir, 'restored.db') })
  nameMissing(invocation, fetched)
  const from = { ...config, databaseUrl: fetched.databasePath }
  await copyServer({
    from,
    to: config,
    log,
    onProgress: (what) => terminal.err(`copied ${what}`),
  })
  const done = await withContext(config, (ctx) => verifyAndContinue(ctx, invocation, fetched), {
    isLocked: true,
    isCopyTarget: true,
    log,
  })
  await releaseTarget({ to: config })
  for (const path of databaseFiles(fetched.databasePath)) await rm(path, { force: true })
  tellRestored(invocation, fetched, done)
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
async function verifyAndContinue(ctx: Context, { terminal }: Given, { missingBlobs, seq }: Named): Promise<Restored> {
  await rawParts.setLargeRecordsAside(ctx.db)
  const { repos, blobs, faults } = await verifyEverything(ctx, {
    onFault: terminal.err,
    lostBlobs: new Set(missingBlobs),
    quick: true,
  })
  if (faults > 0) throw new OperatorError(`the backup has ${faults} faults; nothing was restored`)
  return { repos, blobs, ...(await continueSequence(ctx, seq)) }
}

const tellRestored = (invocation: Given, { name: snapshot, missingBlobs }: Named, restored: Restored): void => {
  const { repos, blobs, accounts, seq } = restored
  const missing = missingBlobs.length === 0 ? '' : `, ${missingBlobs.length} blobs missing`
  const verified = `${repos} repositories and ${blobs - missingBlobs.length} blobs verified${missing}`
  const text = `${snapshot}: ${verified}, ${accounts} accounts announced again, event log continues at ${seq}`
  tellResult(invocation, { snapshot, repos, blobs, accounts, seq, missingBlobs }, text)
}

function rehearsalText(report: Rehearsal): string {
  const { snapshot, createdAt, restored, live } = report
  const row = (name: string, of: (counts: Rehearsal['restored']) => number) => [
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
 * Report blobs that were deleted since as faults, but continue the event log nevertheless: relays have events that the
 * database no longer knows.
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
