/** When the disk of the data directory or of the destination gets full, nothing that was acknowledged is lost. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { diskOf, withSmallDisk } from '../../support/faults/small-disk.ts'
import { freePort } from '../../support/ports.ts'
import { testConfig } from '../../support/servers/config.ts'
import { PROGRAM, runProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-full-backup-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => {
  const path = join(scratch, String(++folders))
  mkdirSync(path)
  return path
}
const DISK_BYTES = 16 * 1024 ** 2
const MAX_WRITES = 1000

/** A server whose data directory, or whose destination, is on a small disk; the database may be on another one. */
async function onSmallDisk(small: 'data' | 'place', promise: 'async' | 'sync', databaseUrl?: string) {
  const folder = newFolder()
  const disk = join(folder, 'disk')
  const places = { data: join(folder, 'data'), place: join(folder, 'place') }
  places[small] = join(disk, small)
  const env = {
    SERVICE_BACKUP_CONTINUOUS: places.place,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: promise,
    SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_DATA_DIR: places.data,
    ...(databaseUrl !== undefined && { SERVICE_DATABASE_URL: databaseUrl }),
    PORT: String(await freePort()),
  }
  const server = await startProgram(['dev'], env, folder, {
    program: [...withSmallDisk(disk, DISK_BYTES), ...PROGRAM],
  })
  const { root, ...full } = diskOf(server.pid, disk)
  return { server, full, place: small === 'place' ? join(root, 'place') : places.place }
}

const stateOf = async ({ url }: { url: string }) => (await request(`${url}/readyz`)).body.continuousBackup
const isSent = (server: { url: string }, promise: string) =>
  until(async () => {
    const state = await stateOf(server)
    return state?.lagMillis === 0 && state.promise === promise
  })

/** Returns the record's key if the write was acknowledged. */
async function write(account: TestAccount, acknowledged: Set<string>): Promise<boolean> {
  const rkey = `note${acknowledged.size}-${crypto.randomUUID()}`
  // Nothing that compresses well.
  const text = Array.from({ length: 500 }, () => crypto.randomUUID()).join('')
  const { status } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection: 'org.example.note', rkey, record: { $type: 'org.example.note', text } },
  })
  if (status === 200) acknowledged.add(rkey)
  return status === 200
}

async function restored(place: string, { did }: TestAccount): Promise<Set<string>> {
  const dataDir = join(newFolder(), 'data')
  const port = await freePort()
  const { code, err } = await runProgram(['restore', place, '--at', '2100-01-01T00:00:00Z', '--dev'], {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_LOG_LEVEL: 'error',
  })
  expect(code, err).toBe(0)
  const app = await startApp(testConfig({ dataDir, port, publicUrl: 'http://localhost:1' }, { development: true }))
  const found = new Set<string>()
  try {
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const query = new URLSearchParams({ repo: did, collection: 'org.example.note', ...(cursor && { cursor }) })
      const { body } = await request(`http://localhost:${port}/xrpc/com.atproto.repo.listRecords?${query}`)
      for (const { uri } of body.records) found.add(uri.split('/').at(-1))
      cursor = body.cursor
    }
  } finally {
    await app.stop()
  }
  return found
}

const leftovers = (place: string): string[] =>
  (readdirSync(place, { recursive: true }) as string[]).filter((name) => name.endsWith('.part'))

test('async: while the disk of the destination is full, writes wait in the data directory, and are sent later', async () => {
  const { server, full, place } = await onSmallDisk('place', 'async')
  await using _ = server
  const alice = await createAccount(server, 'alice')
  const acknowledged = new Set<string>()
  await write(alice, acknowledged)
  await isSent(server, 'async')
  full.fill()
  for (let i = 0; i < 5; i++) expect(await write(alice, acknowledged)).toBe(true)
  await until(async () => (await stateOf(server)).fault === true)
  full.free()
  await isSent(server, 'async')
  expect(await restored(place, alice)).toEqual(acknowledged)
  expect(leftovers(place)).toEqual([])
})

test('sync: while the disk of the destination is full, writes are refused, and none that was not is lost', async () => {
  const { server, full, place } = await onSmallDisk('place', 'sync')
  await using _ = server
  const alice = await createAccount(server, 'alice')
  const acknowledged = new Set<string>()
  await isSent(server, 'sync')
  await write(alice, acknowledged)
  full.fill()
  expect(await write(alice, acknowledged)).toBe(false)
  full.free()
  await until(() => write(alice, acknowledged))
  const found = await restored(place, alice)
  expect([...acknowledged].filter((rkey) => !found.has(rkey))).toEqual([])
  expect(leftovers(place)).toEqual([])
})

for (const promise of ['async', 'sync'] as const)
  test(`${promise}: a data directory whose disk gets full refuses writes, and the backup has all that was acknowledged`, async () => {
    const { server, full, place } = await onSmallDisk('data', promise)
    const alice = await createAccount(server, 'alice')
    const acknowledged = new Set<string>()
    {
      await using _ = server
      await isSent(server, promise)
      await write(alice, acknowledged)
      full.fill()
      // The log of the database has some room of its own.
      for (let i = 0; await write(alice, acknowledged); i++) expect(i).toBeLessThan(MAX_WRITES)
      full.free()
      await until(() => write(alice, acknowledged))
      await isSent(server, promise)
      const found = await restored(place, alice)
      expect([...acknowledged].filter((rkey) => !found.has(rkey))).toEqual([])
      // It is full again when the server stops.
      for (let i = 0; i < 3; i++) await write(alice, acknowledged)
      await isSent(server, promise)
      full.fill()
      server.signal('SIGTERM')
      expect(await server.exited, server.output()).toBe(0)
    }
    const found = await restored(place, alice)
    expect([...acknowledged].filter((rkey) => !found.has(rkey))).toEqual([])
  })

for (const promise of ['async', 'sync'] as const)
  test(`${promise}: while the disk of the spool alone is full, the backup goes on without it`, async () => {
    const folder = newFolder()
    const { server, full, place } = await onSmallDisk('data', promise, `sqlite:${join(folder, 'elsewhere.db')}`)
    const chains = () =>
      readdirSync(join(place, 'continuous'), { withFileTypes: true }).filter((each) => each.isDirectory())
    const alice = await createAccount(server, 'alice')
    const acknowledged = new Set<string>()
    {
      await using _ = server
      await isSent(server, promise)
      await write(alice, acknowledged)
      await isSent(server, promise)
      full.fill()
      for (let i = 0; i < 5; i++) {
        expect(await write(alice, acknowledged)).toBe(true)
        await until(async () => (await stateOf(server)).lagMillis === 0)
      }
      // With `sync`, there is no spool that it would need.
      if (promise === 'async') await until(async () => (await stateOf(server)).fault === true)
      expect(await restored(place, alice)).toEqual(acknowledged)
      full.free()
      await until(async () => (await write(alice, acknowledged)) && (await stateOf(server)).fault === false)
      // It is full again when the server stops.
      full.fill()
      for (let i = 0; i < 3; i++) expect(await write(alice, acknowledged)).toBe(true)
      server.signal('SIGTERM')
      expect(await server.exited, server.output()).toBe(0)
    }
    expect(await restored(place, alice)).toEqual(acknowledged)
    expect(chains()).toHaveLength(1)
  })
