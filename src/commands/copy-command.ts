import { join, resolve } from 'node:path'
import { withContext } from '../app.ts'
import { OperatorError } from '../base/operator-error.ts'
import { continueSequence, verifyEverything } from '../features/backup/backup.ts'
import { copyServer, releaseTarget, whileStopped } from '../features/copying/copying.ts'
import type { Config } from '../platform/configuration/config.ts'
import { isPostgresUrl, withoutPassword } from '../platform/database/postgres.ts'
import { BucketUnavailable } from '../platform/network/bucket-faults.ts'
import { processLog } from '../platform/running/log.ts'
import { exitCodes, Misuse } from './command.ts'
import { configured } from './configuration.ts'

export const copyCommand = configured({
  name: 'copy',
  summary: 'Copy a stopped server to PostgreSQL, to a bucket, or back to a folder.',
  details: `Copies the database to --to, and the blobs to --blobs. What is not named stays where it is, except that a folder
takes the blobs with the database. Refuses to copy a running server, and to a target that is not empty.

Verifies every repository, signature and blob of the copy, as "holdfast verify" does, and continues the event log above
any sequence number that a relay may have seen. No server starts with a copy that has not ended. After an interruption,
run the same command again: the database begins anew, and blobs that were copied are kept.

The source is not changed. Once a server has started with the copy, never start the one it was copied from.`,
  options: {
    to: { value: 'url or folder', doc: 'The postgres:// URL of an empty database, or an empty data directory for SQLite.' },
    blobs: {
      value: 's3://bucket/prefix or "folder"',
      doc: 'A bucket at blobs.s3_endpoint with the keys of [blobs], or the data directory.',
    },
    quick: { doc: 'Skip the second, independent reading of each repository.' },
  },
  async run({ terminal, config: from, options }) {
    const [place, blobs] = [options['to'], options['blobs']]
    if (typeof place !== 'string' && typeof blobs !== 'string') throw new Misuse('name a target: --to, --blobs, or both')
    const to = targetOf(from, typeof place === 'string' ? place : null, typeof blobs === 'string' ? blobs : null)
    const isNewDatabase = to.databaseUrl !== from.databaseUrl
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
          const report = await verifyEverything(ctx, { onFault: terminal.err, lostBlobs, quick: options['quick'] === true })
          if (report.faults > 0) throw new OperatorError(`the copy has ${report.faults} faults; no server will start with it`)
          terminal.out(`${report.repos} repositories and ${report.blobs} blobs verified`)
          if (!isNewDatabase) return
          const { seq, accounts } = await continueSequence(ctx)
          terminal.out(`${accounts} accounts announced again, event log continues at ${seq}`)
        },
        { isLocked: true, isCopyTarget: true },
      )
      if (isNewDatabase) await releaseTarget({ to })
    }).catch((error: unknown) => {
      if (error instanceof BucketUnavailable) throw new OperatorError(`the bucket does not work: ${(error.cause as Error).message}`)
      throw error
    })
    for (const line of changesOf(from, to)) terminal.out(line)
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
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(place) ?? []
  if (bucket === undefined) throw new Misuse('--blobs takes s3://bucket/prefix or "folder"')
  if (blobs.s3Endpoint === null || blobs.s3AccessKeyId === null || blobs.s3SecretAccessKey === null)
    throw new OperatorError('a bucket needs blobs.s3_endpoint, blobs.s3_access_key_id and blobs.s3_secret_access_key')
  return { ...blobs, store: 's3', s3Bucket: bucket, s3KeyPrefix: prefix === '' ? blobs.s3KeyPrefix : `${prefix.replace(/\/+$/, '')}/` }
}

/** What has to change in the configuration before a server is started. */
function changesOf(from: Config, to: Config): string[] {
  const changes: [key: string, before: string | null, after: string | null][] = [
    ['data_dir', resolve(from.dataDir), resolve(to.dataDir)],
    ['database_url', withoutPassword(from.databaseUrl), withoutPassword(to.databaseUrl)],
    ['blobs.store', from.blobs.store, to.blobs.store],
    ['blobs.s3_bucket', from.blobs.s3Bucket, to.blobs.store === 's3' ? to.blobs.s3Bucket : from.blobs.s3Bucket],
    ['blobs.s3_key_prefix', from.blobs.s3KeyPrefix, to.blobs.store === 's3' ? to.blobs.s3KeyPrefix : from.blobs.s3KeyPrefix],
  ]
  return [
    'Before you start the server, set:',
    ...changes.filter(([, before, after]) => before !== after).map(([key, , after]) => `  ${key} = ${after}`),
  ]
}
