/** The real server, on whatever database and with whatever place for blobs the suite runs. */
import { startBucket } from './bucket-host.ts'
import { MASTER_KEY, type ConfigOverrides } from './config.ts'
import { testDatabase } from './postgres.ts'
import { startServerOn, type ServerOptions, type TestPds } from './server.ts'
import { blobsInBucket, onCluster, onPostgres, readers } from './suite.ts'
import { turnAbout } from '../turns.ts'

export { freePort } from '../ports.ts'
export { ADMIN_TOKEN, MASTER_KEY } from './config.ts'
export type { TestPds } from './server.ts'

/**
 * `onFile`: what is tested is the database's file, so it is one whichever database the suite runs on.
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
    (blobsInBucket || manyNodes) && config.blobs?.store === undefined && config.blobMirror === undefined
      ? await startBucket()
      : null
  const ground = { bucket, ...(manyNodes && { assemble: turnAbout }) }
  const pds = await startServerOn(
    ground,
    {
      ...(database && { databaseUrl: database.databaseUrl }),
      ...(manyNodes && { signingKeyMasterKey: MASTER_KEY }),
      ...(readers > 0 && { server: { readers } }),
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
