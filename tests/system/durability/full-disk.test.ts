/** Health tells when nothing can be written, and when it can be again. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderFault } from '../../../src/features/operations/server-info/health.ts'
import { SOFTWARE } from '../../../src/base/version.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { leastCost } from '../../support/least-cost.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { freePort, startPds } from '../../support/servers/pds.ts'
import { PROGRAM, startProgram } from '../../support/servers/program.ts'
import { diskOf, withSmallDisk } from '../../support/faults/small-disk.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

setDefaultTimeout(60_000)
const MIB = 1024 ** 2

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-full-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const health = async (url: string) => {
  const { status, body } = await request(`${url}/xrpc/_health`)
  return { status, body }
}
const BYTES = { 'content-type': 'application/octet-stream' }
const WELL = { status: 200, body: { version: SOFTWARE, db: 'ok' } }

test('a write that the disk refuses makes it ill; it recovers by itself, and so does writing', async () => {
  await using server = await startProgram(
    ['dev'],
    {
      SERVICE_PORT: '0',
      SERVICE_PUBLIC_URL: 'http://localhost:2583',
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_LOG_LEVEL: 'info',
    },
    folder,
    { maxFileBytes: 4_000_000 },
  )
  const account = await createAccount(server, 'alice')
  const write = (text: string) =>
    account.call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
    })
  expect((await write('small')).status).toBe(200)
  expect(await health(server.url)).toEqual(WELL)

  let written = 0
  while ((await write('x'.repeat(100_000))).status === 200) expect(++written).toBeLessThan(100)
  const ill = await health(server.url)
  expect(ill).toMatchObject({ status: 503, body: { version: SOFTWARE, db: 'error', error: 'Service Unavailable' } })
  expect(ill.body.reason).toMatch(/^(the disk is full|the database cannot be written)$/)
  expect(JSON.stringify(ill.body)).not.toContain(folder)
  for (let i = 0; i < 20; i++) expect((await health(server.url)).status).toBe(503)
  expect(server.output().match(/service is failing/g)).toHaveLength(1)

  server.liftFileLimit()
  await until(async () => (await health(server.url)).status === 200)
  expect((await write('x'.repeat(100_000))).status).toBe(200)
  expect(await health(server.url)).toEqual(WELL)
  expect(server.output()).toContain('service has recovered')
  // A page of records has half a mebibyte at most.
  const uris: string[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const { body } = await request(
      `${server.url}/xrpc/com.atproto.repo.listRecords?repo=${account.did}&collection=org.example.note&cursor=${cursor}`,
    )
    uris.push(...body.records.map(({ uri }: { uri: string }) => uri))
    cursor = body.cursor
  }
  expect(new Set(uris).size).toBe(written + 2)
})

test('a disk that is really full, with the log on it: requests are told so, and nothing ends', async () => {
  const disk = join(folder, 'disk')
  const port = await freePort()
  const url = `http://localhost:${port}`
  const child = Bun.spawn(
    [
      ...withSmallDisk(disk, 12 * 1024 ** 2),
      'sh',
      '-c',
      'exec "$@" > "$SERVICE_DATA_DIR.log" 2>&1',
      'sh',
      ...PROGRAM,
      'dev',
    ],
    {
      cwd: folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        SERVICE_PORT: String(port),
        SERVICE_DATA_DIR: join(disk, 'data'),
        SERVICE_LOG_LEVEL: 'debug',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  try {
    const isUp = () =>
      health(url).then(
        ({ status }) => status === 200,
        () => false,
      )
    await until(isUp)
    const { root, fill, free } = diskOf(child.pid, disk)
    const account = await createAccount({ url }, 'bob')
    const write = (text: string) =>
      account.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
      })
    const upload = () =>
      account.call('com.atproto.repo.uploadBlob', { method: 'POST', body: new Uint8Array(10_000), headers: BYTES })
    expect([(await write('small')).status, (await upload()).status]).toEqual([200, 200])

    fill()
    let refused = await write('x'.repeat(10_000))
    // The log of the database has some room of its own.
    for (let i = 0; refused.status === 200 && i < 1000; i++) refused = await write('x'.repeat(10_000))
    const FULL = { status: 503, body: { error: 'ServiceUnavailable', message: 'Try again later: the disk is full' } }
    expect(refused).toMatchObject(FULL)
    expect(await upload()).toMatchObject(FULL)
    expect(await request(`${url}/readyz`)).toMatchObject({ status: 503, body: { reason: 'the disk is full' } })
    const logged = statSync(join(root, 'data.log')).size
    for (let i = 0; i < 20; i++) expect([200, 503]).toContain((await write('small')).status)
    expect(statSync(join(root, 'data.log')).size).toBeLessThan(logged + 4096)

    free()
    await until(isUp)
    expect([(await write('x'.repeat(10_000))).status, (await upload()).status]).toEqual([200, 200])
    await until(() => readFileSync(join(root, 'data.log'), 'utf8').includes('service has recovered'))
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
})

/** A server on a disk of 240 MiB, which it shares with nobody; `files` is what the test sees of that disk. */
async function startOnSmallDisk(name: string, env: Record<string, string> = {}) {
  const disk = join(folder, name)
  const port = await freePort()
  const url = `http://localhost:${port}`
  const child = Bun.spawn([...withSmallDisk(disk, 240 * MIB), ...PROGRAM, 'dev'], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      SERVICE_PORT: String(port),
      SERVICE_DATA_DIR: join(disk, 'data'),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const end = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  await until(() =>
    health(url).then(
      ({ status }) => status === 200,
      () => false,
    ),
  ).catch((error) => end().then(() => Promise.reject(error)))
  return { url, port, files: diskOf(child.pid, disk), [Symbol.asyncDispose]: end }
}

test('blobs that are fetched from the mirror leave room for commits', async () => {
  await using bucket = await startBucket()
  const { mirror } = bucket
  await using server = await startOnSmallDisk('disk of a new machine', {
    SERVICE_BLOB_MIRROR_BUCKET: mirror.bucket,
    SERVICE_BLOB_MIRROR_ENDPOINT: mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
    SERVICE_BLOB_MIRROR_SYNC_INTERVAL_SECS: '1',
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  })
  const { url, files } = server
  const account = await createAccount({ url }, 'dave')
  const write = (record: object) =>
    account.call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', ...record } },
    })
  const { freeBytes } = files
  const cids: string[] = []
  for (const byte of [1, 2]) {
    const body = new Uint8Array(24 * MIB).fill(byte)
    const uploaded = await account.call('com.atproto.repo.uploadBlob', { method: 'POST', body, headers: BYTES })
    expect(await write({ blob: uploaded.body.blob })).toMatchObject({ status: 200 })
    cids.push(uploaded.body.blob.ref.$link)
  }
  await until(() => bucket.keys().filter((key) => key.startsWith('blobs/b')).length === 2)
  for (const cid of cids) rmSync(join(files.root, 'data/blobs', cid.slice(-2), cid))
  // A file that is still open has its room.
  await until(() => files.freeBytes > freeBytes - 8 * MIB)
  writeFileSync(join(files.root, 'ballast'), new Uint8Array(files.freeBytes - 160 * MIB))
  const read = async (cid: string) => {
    const response = await fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${account.did}&cid=${cid}`)
    await response.bytes()
    return response.status
  }
  expect(await read(cids[0]!)).toBe(200)
  expect(await read(cids[1]!)).toBe(503)
  const scrub = await request(`${url}/v1/admin/sweeps/blob-scrub/run`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })
  expect(scrub.body).toMatchObject({ healed: 0, flagged: 1, errors: 1 })
  expect(files.freeBytes).toBeGreaterThan(128 * MIB)
  expect(await write({ text: 'there is room' })).toMatchObject({ status: 200 })
  files.free()
  await until(async () => (await read(cids[1]!)) === 200)
})

test('what clients do not take of repositories and archives, and what they upload, leaves room for commits', async () => {
  await using server = await startOnSmallDisk('disk of strangers')
  const { url, port, files } = server
  const sockets: Socket[] = []
  try {
    const account = await createAccount({ url }, 'carol')
    const write = (text: string) =>
      account.call('com.atproto.repo.createRecord', {
        json: { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note', text } },
      })
    for (let i = 0; i < 200; i++) expect((await write('x'.repeat(100_000))).status).toBe(200)
    for (let i = 0; i < 32; i++) {
      const socket = connect({ host: 'localhost', port }).pause()
      socket.on('error', () => undefined)
      socket.write(`GET /xrpc/com.atproto.sync.getRepo?did=${account.did} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      sockets.push(socket)
    }
    const exports = async (state: string) => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return Number(new RegExp(`^repo_exports_${state}(?:\\{.*\\})? (\\d+)$`, 'm').exec(text)![1])
    }
    await until(async () => (await exports('running')) > 0)
    await until(async () => (await exports('running')) + (await exports('waiting')) === 0)
    expect(await exports('straggling')).toBeGreaterThan(0)
    expect(files.freeBytes).toBeWithin(96 * MIB, 144 * MIB)
    for (let i = 0; i < 20; i++) expect((await write('x'.repeat(10_000))).status).toBe(200)
    const answer = await account.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: new Uint8Array(20 * MIB),
      headers: BYTES,
    })
    expect(answer).toMatchObject({ status: 503, body: { message: expect.stringContaining('no room') } })
    const archive = await request(`${url}/v1/account/archive`, { headers: bearer(account.accessJwt) })
    expect(archive).toMatchObject({ status: 503, body: { error: { message: expect.stringContaining('no room') } } })
  } finally {
    for (const socket of sockets) socket.destroy()
  }
})

test('a log that cannot be copied into the database any more ends no writing for good', async () => {
  const path = join(folder, 'filled.db')
  const child = Bun.spawn(
    ['sh', '-c', 'ulimit -Sf 260000; exec "$@"', 'sh', process.execPath, join(import.meta.dir, 'filler.ts'), path],
    {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    },
  )
  let output = ''
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    output += text
    if (output !== 'full\n') break
    Bun.spawnSync(['prlimit', `--pid=${child.pid}`, '--fsize=unlimited:'])
    child.stdin.write('go on\n')
    child.stdin.flush()
  }
  child.kill()
  await child.exited
  rmSync(path)
  expect(output).toBe('full\nwritten\n')
})

test('asking writes nothing and reads next to nothing, however often', async () => {
  await using pds = await startPds()
  const ask = async () => {
    for (let i = 0; i < 20; i++) expect(await health(pds.url)).toEqual(WELL)
  }
  await ask()
  expect(await leastCost(pds.ctx.db, ask)).toBe(0)
})

test('a transaction that its caller spoils is no fault of the disk', async () => {
  await using pds = await startPds()
  expect(await thrownBy(pds.ctx.db.transaction(() => Promise.reject(new Error('changed my mind'))))).toThrow()
  expect(pds.ctx.db.writeFault).toBeNull()
})

test('a folder without room, and one that is not there, have a fault', async () => {
  expect(await folderFault(folder, 1)).toBeNull()
  expect(await folderFault(folder, Number.MAX_SAFE_INTEGER)).toBe('the disk is full')
  expect(await folderFault(join(folder, 'none'), 1)).toBe('the data directory cannot be written')
})
