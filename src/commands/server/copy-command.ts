import { join, resolve } from 'node:path'
import { withContext } from '../../app.ts'
import { parseBucketPlace } from '../../base/bucket-place.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { withoutTrailingSlashes } from '../../base/trailing.ts'
import { continueSequence, verifyEverything } from '../../features/operations/backup/backup.ts'
import { copyServer, releaseTarget, whileStopped } from '../../features/operations/backup/backup.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { isPostgresUrl, withoutPassword } from '../../platform/database/database-url.ts'
import { processLog } from '../../platform/running/log.ts'
import { exitCodes, Misuse } from '../command.ts'
import { configured, isToml } from '../configuration.ts'
import { linesToSet } from '../lines-to-set.ts'

export const copyCommand = configured({
  summary: 'Copy a stopped server to PostgreSQL, to a bucket, or back to a folder.',
  details: `Copies the database to --to, and the blobs to --blobs. Without one of them, that part stays where it is, except that a
folder given with --to gets the blobs too. Refuses to copy a running server, or to a target that is not empty.

Verifies every repository, signature and blob of the copy, as "holdfast verify" does, and continues the event log above
any sequence number that a relay may have seen. A server refuses to start with an unfinished copy. After an
interruption, run the same command again: it copies the database from the beginning, and keeps the blobs that are
already there.

Does not change the source. Once a server has started with the copy, never start the original again.`,
  options: {
    to: {
      value: 'url or folder',
      doc: 'The postgres:// URL of an empty database, or an empty data directory for SQLite.',
    },
    blobs: {
      value: 's3://bucket/prefix or "folder"',
      doc: 'A bucket at blobs.s3_endpoint with the keys of [blobs], or the data directory.',
    },
    quick: { doc: 'Skip the second, independent reading of each repository.' },
  },
  async run(invocation) {
    const { terminal, config: from, options, flags } = invocation
    const { to: place, blobs } = options
    if (place === undefined && blobs === undefined) throw new Misuse('name a target: --to, --blobs, or both')
    const to = targetOf(from, place ?? null, blobs ?? null)
    const isNewDatabase = to.databaseUrl !== from.databaseUrl
    const changes = changesOf(from, to)
    if (Object.keys(changes).length === 0) throw new Misuse('the target is where the server already is')
    const log = processLog(from)
    await whileStopped({ from, to }, async () => {
      const { rows, blobs } = await copyServer({ from, to, log, onProgress: (what) => terminal.err(`copied ${what}`) })
      if (rows !== null) terminal.out(`${rows} rows copied to ${withoutPassword(to.databaseUrl)}`)
      if (blobs !== null) {
        for (const cid of blobs.missing) terminal.err(`blob ${cid} is missing or damaged at the source`)
        terminal.out(`${blobs.copied} blobs copied, ${blobs.kept} already there, ${blobs.missing.length} missing`)
      }
      const lostBlobs = new Set(blobs?.missing ?? [])
      await withContext(
        to,
        async (ctx) => {
          const report = await verifyEverything(ctx, {
            onFault: terminal.err,
            lostBlobs,
            quick: flags.has('quick'),
          })
          if (report.faults > 0)
            throw new OperatorError(
              `the copy has ${report.faults} faults; no server will start with it. Run "holdfast verify" to see whether the source has them too`,
            )
          terminal.out(`${report.repos} repositories and ${report.blobs} blobs verified`)
          if (!isNewDatabase) return
          const { seq, accounts } = await continueSequence(ctx)
          terminal.out(`${accounts} accounts announced again, event log continues at ${seq}`)
        },
        { isLocked: true, isCopyTarget: true },
      )
      if (isNewDatabase) await releaseTarget({ to })
    })
    const lines = linesToSet(changes, isToml(invocation))
    for (const line of ['Before you start the server, set:', ...lines.map((each) => `  ${each}`)]) terminal.out(line)
    return exitCodes.ok
  },
})

/** The configuration of a server that uses the copy. Throws `OperatorError` if it would be incomplete. */
function targetOf(from: Config, place: string | null, blobs: string | null): Config {
  const isFolder = place !== null && !isPostgresUrl(place)
  if (isFolder && place.includes('://')) throw new Misuse('--to takes a postgres:// URL or a folder')
  const dataDir = isFolder ? resolve(place) : from.dataDir
  const databaseUrl = place === null ? from.databaseUrl : isFolder ? join(dataDir, 'holdfast.db') : place
  return { ...from, dataDir, databaseUrl, blobs: blobsOf(from, blobs ?? (isFolder ? 'folder' : null)) }
}

function blobsOf({ blobs }: Config, place: string | null): Config['blobs'] {
  if (place === null) return blobs
  if (place === 'folder') return { ...blobs, store: 'folder' }
  const bucketPlace = parseBucketPlace(place)
  if (bucketPlace === null) throw new Misuse('--blobs takes s3://bucket/prefix or "folder"')
  if (blobs.s3Endpoint === null || blobs.s3AccessKeyId === null || blobs.s3SecretAccessKey === null)
    throw new OperatorError('a bucket needs blobs.s3_endpoint, blobs.s3_access_key_id and blobs.s3_secret_access_key')
  const { bucket, prefix } = bucketPlace
  return {
    ...blobs,
    store: 's3',
    s3Bucket: bucket,
    s3KeyPrefix: prefix === '' ? blobs.s3KeyPrefix : `${withoutTrailingSlashes(prefix)}/`,
  }
}

/** What to change in the configuration before a server is started. */
function changesOf(from: Config, to: Config): Record<string, string> {
  const changes: [key: string, before: string | null, after: string | null][] = [
    ['data_dir', resolve(from.dataDir), resolve(to.dataDir)],
    ['database_url', withoutPassword(from.databaseUrl), withoutPassword(to.databaseUrl)],
    ['blobs.store', from.blobs.store, to.blobs.store],
    ['blobs.s3_bucket', from.blobs.s3Bucket, to.blobs.store === 's3' ? to.blobs.s3Bucket : from.blobs.s3Bucket],
    [
      'blobs.s3_key_prefix',
      from.blobs.s3KeyPrefix,
      to.blobs.store === 's3' ? to.blobs.s3KeyPrefix : from.blobs.s3KeyPrefix,
    ],
  ]
  const changed = changes.filter(([, before, after]) => before !== after)
  return Object.fromEntries(changed.map(([key, , after]) => [key, after ?? '']))
}
