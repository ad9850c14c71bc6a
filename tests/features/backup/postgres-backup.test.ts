/** Backups of servers on PostgreSQL, and what comes back of them, in either database. */
import { SQL } from 'bun'
import { Database as SqliteFile } from 'bun:sqlite'
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { runCommand } from '../../../src/cli.ts'
import { markCopy } from '../../../src/platform/database/migrations.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { randomBytes, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { MASTER_KEY, testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { emptyDatabase, startServer, testDatabase, type TestDatabase } from '../../support/servers/postgres.ts'
import { PROGRAM } from '../../support/servers/program.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

// Whole servers are backed up, restored and verified.
setDefaultTimeout(60_000)

const home = mkdtempSync(join(tmpdir(), 'holdfast-postgres-backup-'))
const at = (name: string) => join(home, name)
const filesIn = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
const archive = at('archive')
const databases: TestDatabase[] = []
async function keep(made: Promise<TestDatabase>): Promise<string> {
  const database = await made
  databases.push(database)
  return database.databaseUrl
}

/** A server whose blobs are in its folder. */
const pds = setUp(async () =>
  startPdsOnFile({
    databaseUrl: await keep(testDatabase()),
    blobs: { store: 'folder' },
    rateLimit: { enabled: false },
  }),
)
const alice = setUp(() => createAccount(pds, 'alice'))
const picture = setUp(() => Uploader.at(pds, alice.did as Did, alice.accessJwt).upload(randomBytes(5000)))
afterAll(async () => {
  for (const { drop } of databases) await drop()
  rmSync(home, { recursive: true })
})

const env = (dataDir: string, databaseUrl: string | null, more: Record<string, string> = {}) => ({
  SERVICE_DATA_DIR: dataDir,
  ...(databaseUrl === null ? {} : { SERVICE_DATABASE_URL: databaseUrl }),
  SERVICE_PUBLIC_URL: pds.url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  ...more,
})
async function holdfast(environment: Record<string, string>, words: string[]) {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(environment, lines), [...words, '--dev'])
  return { code, text: lines.join('\n') }
}
const here = () => env(pds.dataDir, pds.ctx.config.databaseUrl)

const write = async (account: TestAccount, rkey: string, blob?: Blob) => {
  const { status } = await account.call('com.atproto.repo.createRecord', {
    json: {
      repo: account.did,
      collection: 'com.example.note',
      rkey,
      record: { text: rkey, ...(blob === undefined ? {} : { blob, more: 'x'.repeat(10_000) }) },
    },
  })
  expect(status).toBe(200)
}

/** The server on restored data. */
async function startOn(dataDir: string, overrides: ConfigOverrides) {
  const port = await freePort()
  const app = await startApp(testConfig({ dataDir, port, publicUrl: pds.url }, { development: true, ...overrides }))
  return { url: `http://localhost:${port}`, [Symbol.asyncDispose]: () => app.stop() }
}
const notesAt = async (url: string, did = alice.did) =>
  (
    (await (
      await fetch(`${url}/xrpc/com.atproto.repo.listRecords?repo=${did}&collection=com.example.note`)
    ).json()) as { records: unknown[] }
  ).records.length
const blobAt = (url: string, cid: string, did = alice.did) =>
  fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`)

test('a backup that is made while others write is one state, and is restored into either database', async () => {
  await write(alice, 'first', picture)
  let [writing, written] = [true, 1]
  const writer = (async () => {
    for (; writing; written++) await write(alice, `meanwhile-${written}`)
  })()
  const made = await holdfast(here(), ['backup', archive])
  writing = false
  await writer
  expect(made).toMatchObject({ code: 0, text: expect.stringContaining('1 blobs copied, 0 already there, 0 missing') })
  expect(readdirSync(pds.dataDir).filter((name) => name.startsWith('.backup-'))).toEqual([])

  const rehearsal = await holdfast(here(), ['restore', archive, '--rehearse', '--json'])
  expect(rehearsal.code).toBe(0)
  expect(JSON.parse(rehearsal.text)).toMatchObject({
    restored: { accounts: 1, blobs: 1 },
    live: { accounts: 1, blobs: 1, records: written },
  })

  const [onFile, onServer] = [at('on a file'), at('on a server')]
  expect(await holdfast(env(onFile, null), ['restore', archive])).toMatchObject({ code: 0 })
  {
    using file = new SqliteFile(join(onFile, 'holdfast.db'), { readonly: true })
    expect(file.query('SELECT path FROM large_record').all()).toEqual([{ path: 'com.example.note/first' }])
  }
  const databaseUrl = await keep(emptyDatabase())
  const restored = await holdfast(env(onServer, databaseUrl), ['restore', archive])
  expect(restored).toMatchObject({ code: 0, text: expect.stringContaining('1 repositories and 1 blobs verified') })
  expect(readdirSync(onServer).filter((name) => name.includes('restor'))).toEqual([])
  for (const [dataDir, overrides] of [
    [onFile, {}],
    [onServer, { databaseUrl }],
  ] as const) {
    await using server = await startOn(dataDir, overrides)
    expect(await notesAt(server.url)).toBeGreaterThan(0)
    expect((await blobAt(server.url, picture.ref.$link)).status).toBe(200)
    const follower = new Subscriber(server.url, `?cursor=${Date.now() - 3_600_000}`)
    const told = await follower.untilSeen((messages) => messages.some(({ type }) => type === '#sync'))
    follower.close()
    expect(told.map(({ type }) => type)).toEqual(['#identity', '#account', '#sync'])
  }
  expect(await holdfast(env(onServer, databaseUrl), ['restore', archive])).toMatchObject({
    code: 1,
    text: expect.stringContaining('is not empty'),
  })
})

test('nodes of a cluster write on, and blobs of a bucket come along if they should', async () => {
  await using bucket = await startBucket()
  await using cluster = await startCluster(2, { blobs: bucket.primary, rateLimit: { enabled: false } })
  const [one, two] = cluster.nodes
  const bob = await createAccount(one!, 'bob')
  const photo = await Uploader.at(two!, bob.did as Did, bob.accessJwt).upload(randomBytes(300_000))
  await write(bob, 'photo', photo)
  const bucketEnv = (more: typeof bucket.primary) => ({
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: more.s3Bucket,
    SERVICE_BLOBS_S3_ENDPOINT: more.s3Endpoint,
    SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: more.s3AccessKeyId,
    AWS_SECRET_ACCESS_KEY: more.s3SecretAccessKey.reveal(),
    SERVICE_SIGNING_KEY_MASTER_KEY: Buffer.from(MASTER_KEY.reveal()).toString('hex'),
    SERVICE_BACKUP_PASSPHRASE: 'a passphrase for backups',
    SERVICE_BACKUP_WORK_FACTOR: '10',
  })
  const place = at('of a cluster')
  const environment = env(two!.dataDir, cluster.databaseUrl, bucketEnv(bucket.primary))
  const withBlobs = { ...environment, SERVICE_BACKUP_BUCKET_BLOBS: 'true' }
  expect((await holdfast(environment, ['backup', place])).text).toContain('0 blobs copied')
  expect((await holdfast(withBlobs, ['backup', place])).text).toContain('1 blobs copied, 0 already there, 0 missing')

  await using empty = await startBucket()
  const databaseUrl = await keep(emptyDatabase())
  const elsewhere = env(at('elsewhere'), databaseUrl, bucketEnv(empty.primary))
  const restored = await holdfast(elsewhere, ['restore', place])
  expect(restored).toMatchObject({ code: 0, text: expect.stringContaining('1 repositories and 1 blobs verified') })
  await using server = await startOn(at('elsewhere'), {
    databaseUrl,
    blobs: empty.primary,
    signingKeyMasterKey: MASTER_KEY,
  })
  expect(await notesAt(server.url, bob.did)).toBe(1)
  expect((await (await blobAt(server.url, photo.ref.$link, bob.did)).bytes()).length).toBe(300_000)
})

test('a backup of a server on SQLite is restored into PostgreSQL, again if that was interrupted', async () => {
  await using other = await startPdsOnFile({})
  await write(await createAccount(other, 'carol'), 'on-sqlite')
  const place = at('of SQLite')
  expect(await holdfast(env(other.dataDir, null), ['backup', place])).toMatchObject({ code: 0 })
  const databaseUrl = await keep(emptyDatabase())
  const half = await openDatabase({ databaseUrl, access: 'exclusive' })
  await markCopy(half, 1)
  await half.close()
  const target = at('moved to a server')
  expect(await thrownBy(startOn(target, { databaseUrl }))).toThrow('unfinished copy')
  expect(await holdfast(env(target, databaseUrl), ['restore', place])).toMatchObject({
    code: 0,
    text: expect.stringContaining('1 repositories and 0 blobs verified'),
  })
  await using server = await startOn(target, { databaseUrl })
  expect((await fetch(`${server.url}/xrpc/_health`)).status).toBe(200)
})

test('a backup that is killed, or loses the database half-way, leaves none, and the next one succeeds', async () => {
  const server = await startServer()
  try {
    await server.createDatabase('lost')
    const databaseUrl = server.url('lost')
    await using other = await startPdsOnFile({ databaseUrl, blobs: { store: 'folder' } })
    await createAccount(other, 'dora')
    const environment = env(other.dataDir, databaseUrl)
    const place = at('broken off')
    /** Runs a backup until it waits for a table that somebody else has locked, so that it is in the middle. */
    const halfWay = async (work: (backup: Bun.Subprocess<'ignore', 'pipe', 'pipe'>) => Promise<void>) => {
      const sql = new SQL({ adapter: 'postgres', url: databaseUrl, max: 2 })
      const connection = await sql.reserve()
      await connection`BEGIN`
      await connection`LOCK TABLE waitlist_entry IN ACCESS EXCLUSIVE MODE`
      const backup = Bun.spawn([...PROGRAM, 'backup', place, '--dev'], {
        env: { PATH: process.env['PATH'] ?? '', HOME: home, ...environment },
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      await until(
        async () =>
          (await sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%waitlist_entry%'`)
            .length > 0,
      )
      await work(backup)
      connection.release()
      await sql.close({ timeout: 0 })
    }
    await halfWay(async (backup) => {
      backup.kill('SIGKILL')
      await backup.exited
    })
    await halfWay(async (backup) => {
      await server.crash()
      expect(await backup.exited).toBe(1)
      expect(await new Response(backup.stderr).text()).toMatch(/database/)
    })
    // The one that was killed has left its mark, which goes after a week.
    expect(filesIn(join(place, 'snapshots'))).toEqual([expect.stringMatching(/^[\dTZ]+\/begun-[\da-f-]+$/)])
    await server.restart()
    expect(await holdfast(environment, ['backup', place])).toMatchObject({ code: 0 })
    expect(await holdfast(env(at('after a crash'), null), ['restore', place])).toMatchObject({ code: 0 })
  } finally {
    server.stop()
  }
})

test('a full disk is said in a sentence, and leaves nothing', async () => {
  const disk = at('disk')
  const script = `"$@" backup ${at('no-room')} --dev; ls -A ${disk}`
  const program = Bun.spawn([...withSmallDisk(disk, 200_000), 'sh', '-c', script, 'sh', ...PROGRAM], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env(disk, pds.ctx.config.databaseUrl) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(program.stdout).text(), new Response(program.stderr).text()])
  expect([out, err]).toEqual(['', expect.stringContaining('disk is full')])
  expect(filesIn(join(at('no-room'), 'snapshots'))).toEqual([])
})

test('a database that no server has used is not backed up', async () => {
  const databaseUrl = await keep(emptyDatabase())
  expect(await holdfast(env(at('unused'), databaseUrl), ['backup', at('of nothing')])).toMatchObject({
    code: 1,
    text: expect.stringContaining('no server has used postgres://'),
  })
})
