/** The real server, on whatever database and with whatever place for blobs the suite runs. */
import { MASTER_KEY, type ConfigOverrides } from './config.ts'
import { hasBucket, leavesBlobs, ofSuite } from './file-pds.ts'
import { testDatabase } from './postgres.ts'
import { startServerOn, type ServerOptions, type TestPds } from './server.ts'
import { onCluster, onPostgres } from './suite.ts'
import { turnAbout } from '../turns.ts'

export { freePort } from '../ports.ts'
export { ADMIN_TOKEN, MASTER_KEY } from './config.ts'
export type { TestPds } from './server.ts'

/**
 * `onFile`: what is tested is the database's file, so it is one whichever database the suite runs on. Where that holds
 * for all servers of a test file, they are started with `startPdsOnFile`.
 *
 * `alone`: why the server is one node also where the suite runs on two: each node counts or caches for itself what is
 * tested, or the test replaces a part of the server.
 */
type StartOptions = ServerOptions & { onFile?: boolean; alone?: string }

export async function startPds(
  config: ConfigOverrides = {},
  { onFile = false, alone, ...options }: StartOptions = {},
): Promise<TestPds> {
  const database = onPostgres && !onFile && config.databaseUrl === undefined ? await testDatabase() : null
  const manyNodes =
    onCluster &&
    alone === undefined &&
    database !== null &&
    options.listen === undefined &&
    options.sharesDatabase === undefined &&
    // Nodes share their blobs, which a folder is not for.
    config.blobs?.store !== 'folder' &&
    config.blobMirror === undefined
  const bucket =
    hasBucket(config) || (manyNodes && leavesBlobs(config))
      ? await (await import('./bucket-host.ts')).startBucket()
      : null
  const ground = { bucket, ...(manyNodes && { assemble: turnAbout }) }
  const pds = await startServerOn(
    ground,
    {
      ...(database && { databaseUrl: database.databaseUrl }),
      ...(manyNodes && { signingKeyMasterKey: MASTER_KEY }),
      ...ofSuite,
      ...config,
    },
    options,
  )
  const dispose = pds[Symbol.asyncDispose]
  // Not a copy: its context is that of the server as it runs now.
  return Object.assign(pds, {
    async [Symbol.asyncDispose]() {
      try {
        await dispose()
      } finally {
        await database?.drop()
      }
    },
  })
}
