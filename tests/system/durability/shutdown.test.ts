/** SIGTERM while the server is at work: what runs is finished, who listens is told, and nothing is left half done. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { listen } from '../../../src/http/listener.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { testConfig } from '../../support/servers/config.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { thrownBy } from '../../support/thrown.ts'
import { until } from '../../support/until.ts'

const HALF = 'half of the bytes, '

async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-shutdown-'))
  const env = { PORT: String(await freePort()) }
  let server = await startProgram(['dev'], env, folder)
  return {
    get server(): RunningServer {
      return server
    },
    async restart() {
      server = await startProgram(['dev'], env, folder)
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function createAlice(url: string): Promise<{ did: string; accessJwt: string }> {
  const { body } = await request(`${url}/xrpc/com.atproto.server.createAccount`, {
    json: { handle: 'alice.test', email: 'alice@example.com', password: 'alice-password' },
  })
  return body
}

async function terminate(server: RunningServer): Promise<void> {
  server.signal('SIGTERM')
  await until(() => server.output().includes('stopping'))
}

/** An upload of which the server has the first half. */
async function halfAnUpload(url: string, accessJwt: string) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const body = writable.getWriter()
  const uploading = fetch(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
    method: 'POST',
    headers: { ...bearer(accessJwt), 'content-type': 'text/plain' },
    body: readable,
  })
  await body.write(Buffer.from(HALF))
  await request(`${url}/xrpc/_health`)
  return { body, uploading }
}

test('a server that has stopped waits for nothing more', async () => {
  await using running = await startServer()
  const { server } = running
  const end = { code: null as number | null }
  void server.exited.then((code) => (end.code = code))
  server.signal('SIGTERM')
  await until(() => server.output().includes('stopped'))
  await until(() => end.code !== null, { maxMillis: 2000 })
  expect(end.code).toBe(0)
})

test('an upload that has begun is finished, and is there after the restart', async () => {
  await using running = await startServer()
  const { url } = running.server
  const { did, accessJwt } = await createAlice(url)

  const { body, uploading } = await halfAnUpload(url, accessJwt)
  await terminate(running.server)
  await body.write(Buffer.from(HALF))
  await body.close()

  const answer = await uploading
  expect(answer.status).toBe(200)
  const { blob } = (await answer.json()) as { blob: { ref: { $link: string } } }
  expect(await running.server.exited).toBe(0)

  await running.restart()
  const record = { $type: 'com.example.file', blob }
  await request(`${url}/xrpc/com.atproto.repo.createRecord`, {
    headers: bearer(accessJwt),
    json: { repo: did, collection: 'com.example.file', record },
  })
  const stored = await request(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${blob.ref.$link}`)
  expect(stored).toMatchObject({ status: 200, body: HALF + HALF })
})

test('subscribers are closed as "going away", and go on where they were after the restart', async () => {
  await using running = await startServer()
  const { url } = running.server
  await createAlice(url)
  const before = new Subscriber(url, '?cursor=0')
  await before.until(2)
  await terminate(running.server)
  expect((await before.closed).code).toBe(1001)
  expect(await running.server.exited).toBe(0)

  await running.restart()
  const after = new Subscriber(url, `?cursor=${before.seqs[0]}`)
  expect((await after.until(1))[0]?.body.seq).toBe(before.seqs[1]!)
  after.close()
})

test('new requests are turned away while the last ones end', async () => {
  await using running = await startServer()
  const { url } = running.server
  const { accessJwt } = await createAlice(url)
  const { body, uploading } = await halfAnUpload(url, accessJwt)
  await terminate(running.server)
  const refused = await fetch(`${url}/xrpc/_health`, { keepalive: false }).then(
    ({ status }) => status,
    () => 'no connection',
  )
  expect([503, 'no connection']).toContain(refused)
  await body.close()
  expect((await uploading).status).toBe(200)
  expect(await running.server.exited).toBe(0)
})

test('a part that cannot be stopped keeps no other from being stopped', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-shutdown-'))
  const config = testConfig({ dataDir, port: await freePort(), publicUrl: 'http://localhost:1' })
  const app = await startApp(config, {
    listen(...given) {
      const listener = listen(...given)
      const stop = (graceMillis: number) => listener.stop(graceMillis).then(() => Promise.reject(new Error('no')))
      return { ...listener, stop }
    },
  })
  try {
    expect(await thrownBy(app.stop())).toThrow('no')
    // SQLite deletes its log when the database is closed.
    expect(readdirSync(dataDir).filter((name) => name.endsWith('-wal'))).toEqual([])
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})

test('a server that drains says so, serves on, and ends at a second signal', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-draining-'))
  const env = {
    PORT: String(await freePort()),
    SERVICE_NODE_DRAIN_SECS: '60',
    SERVICE_NODE_NAME: 'node-a',
    SERVICE_LOG_FORMAT: 'json',
  }
  await using server = await startProgram(['dev'], env, folder)
  const { url } = server
  expect(await request(`${url}/readyz`)).toMatchObject({ status: 200, body: { status: 'ok' } })
  const subscriber = new Subscriber(url, '?cursor=0')

  server.signal('SIGTERM')
  await until(() => server.output().includes('draining'))
  const refused = await request(`${url}/readyz`)
  expect(refused).toMatchObject({ status: 503, body: { status: 'unavailable', reason: 'the server is about to stop' } })
  expect(refused.headers.get('retry-after')).toBe('5')
  expect((await request(`${url}/livez`)).status).toBe(200)
  expect((await request(`${url}/xrpc/_health`)).status).toBe(200)
  await createAlice(url)
  await subscriber.until(1)
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('firehose_events_total{frame="commit",node="node-a"}')
  for (const line of server
    .output()
    .split('\n')
    .filter((each) => each.startsWith('{')))
    expect(JSON.parse(line).node).toBe('node-a')

  server.signal('SIGTERM')
  expect(await server.exited).toBe(130)
  rmSync(folder, { recursive: true, force: true })
})

test('after the time to drain, subscribers are sent elsewhere and the server ends', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-draining-'))
  await using server = await startProgram(
    ['dev'],
    { PORT: String(await freePort()), SERVICE_NODE_DRAIN_SECS: '1' },
    folder,
  )
  const subscriber = new Subscriber(server.url, '?cursor=0')
  await createAlice(server.url)
  await subscriber.until(1)
  server.signal('SIGTERM')
  expect((await subscriber.closed).code).toBe(1001)
  expect(await server.exited).toBe(0)
  const said = ['draining', 'stopping', 'stopped'].map((each) => server.output().indexOf(each))
  expect(said).toEqual(said.toSorted((a, b) => a - b))
  rmSync(folder, { recursive: true, force: true })
})
