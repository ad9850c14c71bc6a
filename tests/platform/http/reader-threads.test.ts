/** A reader thread that ends by itself leaves nothing behind, and another takes its place. */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { endpointRoute } from '../../../src/http/endpoint.ts'
import { ReaderThreads } from '../../../src/http/reader-threads.ts'
import { readerEndpoints } from '../../../src/reader-endpoints.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'

test('a thread that ends is replaced, and its requests and its hold on the log end with it', async () => {
  await using pds = await startPdsOnFile({ rateLimit: { enabled: false } })
  const { did } = await createAccount(pds, 'alice')
  const workers: Worker[] = []
  const aborted: boolean[] = []
  const port = await freePort()
  const threads = await ReaderThreads.start({
    ctx: pds.ctx,
    dispatcher: {
      dispatch: ({ signal }) => {
        const { promise, resolve } = Promise.withResolvers<Response>()
        aborted.push(false)
        signal.addEventListener('abort', () => {
          aborted[0] = true
          resolve(new Response())
        })
        return promise
      },
      unsent: () => new Response(),
      stop: async () => {},
    },
    count: 1,
    hostname: 'localhost',
    port,
    databasePath: join(pds.dataDir, 'holdfast.db'),
    routes: readerEndpoints.map(endpointRoute),
    spawn() {
      const worker = new Worker(new URL('../../../src/reader-worker.ts', import.meta.url).href)
      workers.push(worker)
      return worker
    },
    passed: null,
  })
  const url = `http://localhost:${port}/xrpc`
  const status = async () =>
    (await fetch(`${url}/com.atproto.sync.getLatestCommit?did=${did}`, { headers: { connection: 'close' } })).status
  const isAnswered = () => status().then(Number.isInteger, () => false)
  expect(await status()).toBe(200)
  const waiting = fetch(`${url}/com.atproto.server.getSession`).then(
    ({ status }) => status,
    () => 'broken off',
  )
  await until(() => aborted.length === 1)
  workers[0]!.terminate()
  // The server of a worker that is terminated answers some requests with 204, and nothing else.
  expect(['broken off', 204]).toContain(await waiting)
  await until(isAnswered)
  expect([workers.length, await status(), aborted]).toEqual([2, 200, [true]])
  expect(pds.log.filter(({ message }) => message === 'a reader thread has failed')).toHaveLength(1)
  await threads.stop(1000)
  await pds.stop()
  // A connection that nobody closed would have kept the last checkpoint from emptying the log.
  expect(existsSync(join(pds.dataDir, 'holdfast.db-wal'))).toBe(false)
})
