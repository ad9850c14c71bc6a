/** A reader thread that ends by itself leaves nothing behind, and another takes its place. */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { endpointRoute } from '../../../src/http/endpoint.ts'
import { ReaderThreads } from '../../../src/http/reader-threads.ts'
import { readerEndpoints } from '../../../src/reader-endpoints.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import type { Dispatcher } from '../../../src/http/dispatcher.ts'
import { freePort } from '../../support/ports.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'

/** A thread beside a main thread that answers in this way. */
async function oneThread(pds: TestPds, dispatch: Dispatcher['dispatch']) {
  const workers: Worker[] = []
  const port = await freePort()
  const threads = await ReaderThreads.start({
    ctx: pds.ctx,
    dispatcher: { dispatch, unsent: () => new Response(), stop: async () => {} },
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
  return { threads, workers, url: `http://localhost:${port}/xrpc` }
}

test('a thread that ends is replaced, and its requests and its hold on the log end with it', async () => {
  await using pds = await startPdsOnFile({ rateLimit: { enabled: false } })
  const { did } = await createAccount(pds, 'alice')
  const aborted: boolean[] = []
  const { threads, workers, url } = await oneThread(pds, ({ signal }) => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    aborted.push(false)
    signal.addEventListener('abort', () => {
      aborted[0] = true
      resolve(new Response())
    })
    return promise
  })
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
  expect(pds.log.filter(({ message }) => message === 'reader thread failed')).toHaveLength(1)
  await threads.stop(1000)
  await pds.stop()
  // A connection that nobody closed would have kept the last checkpoint from emptying the log.
  expect(existsSync(join(pds.dataDir, 'holdfast.db-wal'))).toBe(false)
})

test('a client that goes away while its WebSocket is prepared gets none', async () => {
  await using pds = await startPdsOnFile()
  const upgrades: boolean[] = []
  const arrived = Promise.withResolvers<void>()
  const { threads, url } = await oneThread(pds, async (request, peer) => {
    const gone = new Promise((resolve) => request.signal.addEventListener('abort', resolve))
    arrived.resolve()
    await gone
    upgrades.push(peer.upgrade(request, { open() {}, drain() {}, closed() {} }))
    return new Response()
  })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/com.atproto.sync.subscribeRepos`)
  await arrived.promise
  socket.close()
  await until(() => upgrades.length === 1)
  expect(upgrades).toEqual([false])
  await threads.stop(1000)
})
