/** A stopped server moves to PostgreSQL and a bucket, and back to a folder. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { tablesOf } from '../../../src/platform/database/catalog.ts'
import { sql, Sql, type Database } from '../../../src/platform/database/database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { markCopy, migrate } from '../../../src/platform/database/migrations.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { ADMIN_TOKEN, testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { emptyDatabase, type TestDatabase } from '../../support/servers/postgres.ts'
import { PROGRAM } from '../../support/servers/program.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { thrownBy } from '../../support/thrown.ts'

// Whole servers are copied and verified.
setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-copying-'))
let small: string
let large: string
const databases: TestDatabase[] = []
const emptyPostgres = async (): Promise<string> => {
  const database = await emptyDatabase()
  databases.push(database)
  return database.databaseUrl
}

const { pds, bucket } = useWorldOnFile({ bucket: true, config: { blobs: { store: 'folder' } } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const upload = async (body: Uint8Array<ArrayBuffer>) =>
    (
      await alice.call('com.atproto.repo.uploadBlob', {
        method: 'POST',
        body,
        headers: { 'content-type': 'image/png' },
      })
    ).body.blob
  const blobs = [await upload(new Uint8Array(1000).fill(1)), await upload(new Uint8Array(9 * 1024 ** 2).fill(2))]
  ;[small, large] = blobs.map((blob) => blob.ref.$link) as [string, string]
  for (let i = 0; i < 60; i++) await post(alice, `note ${i}`, i === 0 ? blobs : [])
  const bob = await createAccount(pds, 'bob')
  await post(bob, 'bob was here')
  await post(bob, 'and stayed '.repeat(2000))
  await pds.stop()
})
afterAll(async () => {
  for (const { drop } of databases) await drop()
  rmSync(scratch, { recursive: true })
})

const post = async (account: TestAccount, text: string, blobs: unknown[] = []) => {
  const record = { $type: 'org.example.note', text, blobs }
  const { status, body } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection: 'org.example.note', record },
  })
  expect(status).toBe(200)
  return body as { uri: string; cid: string }
}

const bucketEnv = () => ({
  SERVICE_BLOBS_S3_ENDPOINT: bucket.primary.s3Endpoint,
  SERVICE_BLOBS_S3_ACCESS_KEY_ID: bucket.primary.s3AccessKeyId,
  SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: bucket.primary.s3SecretAccessKey.reveal(),
  SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
})
const envOf = (dataDir: string, env: Record<string, string> = {}) => ({
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PUBLIC_URL: pds.url,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  ...bucketEnv(),
  ...env,
})
async function copy(dataDir: string, words: string[], env: Record<string, string> = {}) {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(envOf(dataDir, env), lines), ['copy', ...words, '--dev'])
  return { code, text: lines.join('\n') }
}
const startOn = async (dataDir: string, overrides: ConfigOverrides) => {
  const port = await freePort()
  const config = testConfig(
    { dataDir, port, publicUrl: pds.url },
    { adminToken: new Secret(ADMIN_TOKEN), ...overrides },
  )
  const app = await startApp(config)
  return { ...app, url: `http://localhost:${port}`, [Symbol.asyncDispose]: () => app.stop() }
}
const notes = async (url: string) => {
  const found = await fetch(
    `${url}/xrpc/com.atproto.repo.listRecords?repo=${alice.did}&collection=org.example.note&limit=100`,
  )
  return ((await found.json()) as { records: { uri: string; cid: string; value: { text: string } }[] }).records
}
const blobAt = async (url: string, cid: string) =>
  (await fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`)).bytes()

/** All rows of all tables, those that a copy changes on purpose left out. */
async function contentOf(db: Database): Promise<Record<string, unknown[]>> {
  const changed = new Set([
    'schema_migration',
    'node',
    'commit_mark',
    'database_history',
    'lease',
    'clock_seen',
    'repo',
    'repo_seq',
    'repo_seq_past',
    'repo_seq_run',
    'unnumbered_event',
    'push_sender_key',
  ])
  const content: Record<string, unknown[]> = {}
  for (const { name, columns } of (await tablesOf(db)).values()) {
    if (changed.has(name)) continue
    const rows = await db.all<Record<string, unknown>>(
      new Sql([`SELECT ${columns.map((column) => `"${column}"`).join(', ')} FROM "${name}"`], []),
    )
    content[name] = rows
      .map((row) =>
        JSON.stringify(
          columns
            .toSorted()
            .map((column) =>
              row[column] instanceof Uint8Array ? Buffer.from(row[column]).toString('hex') : row[column],
            ),
        ),
      )
      .toSorted()
  }
  return content
}
const inspect = async <T>(databaseUrl: string, work: (db: Database) => Promise<T>): Promise<T> => {
  const db = await openDatabase({ databaseUrl })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

test('a server moves to PostgreSQL and a bucket, goes on there, and comes back to a folder', async () => {
  const databaseUrl = await emptyPostgres()
  const before = await inspect(join(pds.dataDir, 'holdfast.db'), contentOf)
  const head = await inspect(join(pds.dataDir, 'holdfast.db'), (db) =>
    db.get<{ seq: number }>(sql`SELECT max(seq) AS seq FROM repo_seq`),
  )
  const there = await copy(pds.dataDir, ['--to', databaseUrl, '--blobs', `s3://${bucket.primary.s3Bucket}/moved`])
  expect(there).toMatchObject({ code: 0 })
  expect(there.text).toContain('2 blobs copied, 0 already there, 0 missing')
  expect(there.text).toContain('2 repositories and 2 blobs verified')
  expect(there.text).toContain('2 accounts announced again')
  expect(there.text).toMatch(
    /^ +SERVICE_BLOBS_STORE=s3\n +SERVICE_BLOBS_S3_BUCKET=copies\n +SERVICE_BLOBS_S3_KEY_PREFIX=moved\/$/m,
  )
  expect(await inspect(databaseUrl, contentOf)).toEqual(before)

  const inBucket = { databaseUrl, blobs: { ...bucket.primary, s3KeyPrefix: 'moved/' } }
  let written: { uri: string; cid: string }
  {
    await using server = await startOn(pds.dataDir, inBucket)
    expect(await notes(server.url)).toHaveLength(60)
    expect(await blobAt(server.url, small)).toEqual(new Uint8Array(1000).fill(1))
    expect(await blobAt(server.url, large)).toEqual(new Uint8Array(9 * 1024 ** 2).fill(2))
    const again = await logIn(server, alice, PASSWORD)
    written = await post(again, 'written on PostgreSQL')
    const relay = new Subscriber(server.url, `?cursor=${head!.seq}`)
    const seen = await relay.untilSeen((messages) => messages.some(({ type }) => type === '#commit'))
    relay.close()
    const types = (did: string) =>
      seen.filter(({ body }) => (body['did'] ?? body['repo']) === did).map(({ type }) => type)
    expect(types(alice.did)).toEqual(['#identity', '#account', '#sync', '#commit'])
    // Above anything that can have been counted.
    expect(seen.every(({ body }) => Number(body['seq']) > Date.now() - 600_000)).toBe(true)
  }

  // As a kill leaves it: an event without a number.
  await inspect(databaseUrl, (db) =>
    db.run(sql`
      INSERT INTO unnumbered_event (did, event_type, erases, written_at, head, middle, rest)
      SELECT did, 'identity', 0, 1, CAST('\\xa1' AS BYTEA), CAST('\\xa2' AS BYTEA), CAST('\\xa3' AS BYTEA) FROM account LIMIT 1`),
  )
  const folder = join(scratch, 'back')
  const afterwards = await inspect(databaseUrl, contentOf)
  const env = {
    SERVICE_DATABASE_URL: databaseUrl,
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: bucket.primary.s3Bucket,
    SERVICE_BLOBS_S3_KEY_PREFIX: 'moved/',
  }
  const back = await copy(pds.dataDir, ['--to', folder], env)
  expect(back).toMatchObject({ code: 0 })
  expect(await inspect(join(folder, 'holdfast.db'), contentOf)).toEqual(afterwards)
  const left = await inspect(join(folder, 'holdfast.db'), (db) => db.all(sql`SELECT 1 FROM unnumbered_event`))
  const numbered = await inspect(join(folder, 'holdfast.db'), (db) =>
    db.all(sql`SELECT 1 FROM repo_seq WHERE substr(frame, 1, 1) = X'a1' AND length(frame) < 60`),
  )
  expect([left.length, numbered.length]).toEqual([0, 1])
  expect(readFileSync(join(folder, 'master.key'))).toEqual(readFileSync(join(pds.dataDir, 'master.key')))
  await using server = await startOn(folder, {})
  expect((await notes(server.url)).map(({ cid }) => cid)).toContain(written.cid)
  expect(await blobAt(server.url, large)).toEqual(new Uint8Array(9 * 1024 ** 2).fill(2))
  await post(await logIn(server, alice, PASSWORD), 'and back')
})

test('large records that were written on PostgreSQL are stored apart on SQLite', async () => {
  const databaseUrl = await emptyPostgres()
  expect(await copy(pds.dataDir, ['--to', databaseUrl])).toMatchObject({ code: 0 })
  const text = 'long '.repeat(4000)
  {
    await using server = await startOn(pds.dataDir, { databaseUrl })
    await post(await logIn(server, alice, PASSWORD), text)
  }
  const sizes = sql`SELECT length(value) AS size FROM large_record ORDER BY size`
  expect(await inspect(databaseUrl, (db) => db.all(sizes))).toHaveLength(1)
  const folder = join(scratch, 'large')
  expect(await copy(pds.dataDir, ['--to', folder], { SERVICE_DATABASE_URL: databaseUrl })).toMatchObject({ code: 0 })
  const [longest] = await inspect(join(folder, 'holdfast.db'), (db) =>
    db.all<{ size: number }>(sql`SELECT max(length(value)) AS size FROM record`),
  )
  expect(longest!.size).toBeLessThan(1000)
  expect(await inspect(join(folder, 'holdfast.db'), (db) => db.all(sizes))).toHaveLength(2)
  await using server = await startOn(folder, {})
  expect((await notes(server.url)).map(({ value }) => value.text)).toContain(text)
})

test('what is not named stays where it is', async () => {
  const database = await copy(pds.dataDir, ['--to', await emptyPostgres()])
  expect(database).toMatchObject({ code: 0 })
  expect(database.text).not.toContain('blobs copied')
  const blobs = await copy(pds.dataDir, ['--blobs', 's3://copies/apart'])
  expect(blobs).toMatchObject({ code: 0 })
  expect(blobs.text).toContain('2 blobs copied')
  expect(blobs.text).not.toContain('announced')
  // Once more: they are there.
  expect((await copy(pds.dataDir, ['--blobs', 's3://copies/apart'])).text).toContain('0 blobs copied, 2 already there')
})

test('a server that runs is not copied', async () => {
  await using _running = await startOn(pds.dataDir, {})
  expect(await copy(pds.dataDir, ['--to', await emptyPostgres()])).toMatchObject({
    code: 1,
    text: expect.stringContaining('is in use by another process'),
  })
})

test('a target that holds something is refused, and left as it is', async () => {
  const databaseUrl = await emptyPostgres()
  await inspect(databaseUrl, (db) => db.run(sql`CREATE TABLE precious (id BIGINT)`))
  expect(await copy(pds.dataDir, ['--to', databaseUrl])).toMatchObject({
    code: 1,
    text: expect.stringContaining('is not empty'),
  })
  expect(await inspect(databaseUrl, async (db) => [...(await tablesOf(db)).keys()])).toEqual(['precious'])

  const folder = join(scratch, 'taken')
  mkdirSync(join(folder, 'blobs', 'aa'), { recursive: true })
  expect(await copy(pds.dataDir, ['--to', folder])).toMatchObject({
    code: 1,
    text: expect.stringContaining('is not empty (blobs)'),
  })
  expect(existsSync(join(folder, 'holdfast.db'))).toBe(false)

  await bucket.write('foreign/ab/bafkreiabkreiabkreiabkreiabkreiab', new Uint8Array(3))
  expect(
    (
      await copy(pds.dataDir, ['--to', join(scratch, 'new'), '--blobs', 's3://copies/missing-keys'], {
        SERVICE_BLOBS_S3_ENDPOINT: '',
      })
    ).code,
  ).toBe(1)
  for (const words of [[], ['--to', 'mysql://localhost/x'], ['--blobs', 'ftp://x']])
    expect((await copy(pds.dataDir, words)).code).toBe(2)
})

test('a copy that was killed is no server, and is made anew by the same command', async () => {
  const databaseUrl = await emptyPostgres()
  const words = ['copy', '--to', databaseUrl, '--blobs', 's3://copies/killed', '--dev']
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  // The large blob never arrives.
  bucket.intercept = ({ method }, _, key) => {
    if (method !== 'PUT' || !key.startsWith('killed/incoming/') || key.includes('probe')) return false
    resolve()
    return true
  }
  const child = Bun.spawn([...PROGRAM, ...words], {
    cwd: scratch,
    env: { PATH: process.env['PATH'] ?? '', ...envOf(pds.dataDir) },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  await Promise.race([arrived, child.exited.then((code) => Promise.reject(new Error(`it ended with ${code}`)))])
  child.kill('SIGKILL')
  await child.exited
  bucket.intercept = null
  expect(await thrownBy(startOn(pds.dataDir, { databaseUrl, blobs: bucket.primary }))).toThrow(
    'holds an unfinished copy',
  )
  // Something that the copy had not reached yet.
  await inspect(databaseUrl, (db) => db.run(sql`DELETE FROM record`))
  const again = await copy(pds.dataDir, ['--to', databaseUrl, '--blobs', 's3://copies/killed'])
  expect(again).toMatchObject({ code: 0 })
  expect(again.text).toContain('1 blobs copied, 1 already there, 0 missing')
  await using server = await startOn(pds.dataDir, { databaseUrl, blobs: { ...bucket.primary, s3KeyPrefix: 'killed/' } })
  expect(await notes(server.url)).toHaveLength(60)
})

test('what an interrupted copy left in a folder is replaced by the next one', async () => {
  const folder = join(scratch, 'interrupted')
  mkdirSync(folder)
  await inspect(join(folder, 'holdfast.db'), async (db) => {
    await markCopy(db, 1)
    await migrate(db, migrations, 1, { isCopyTarget: true })
    await db.run(sql`INSERT INTO waitlist_entry (email, handle, created_at) VALUES ('half@example.com', 'half', 1)`)
  })
  expect(await thrownBy(startOn(folder, {}))).toThrow('holds an unfinished copy')
  expect(await copy(folder, ['--to', join(scratch, 'onwards')])).toMatchObject({ code: 1 })
  const held = openSync(join(folder, 'holdfast.db'), 'r')
  expect(await copy(pds.dataDir, ['--to', folder])).toMatchObject({ code: 0 })
  expect(await inspect(join(folder, 'holdfast.db'), (db) => db.all(sql`SELECT 1 FROM waitlist_entry`))).toEqual([])
  // A file in its place would not have the mark yet: if that copy was killed too, the next one would refuse the folder.
  expect(fstatSync(held).nlink).toBe(1)
  closeSync(held)
  await using server = await startOn(folder, {})
  expect(await notes(server.url)).toHaveLength(60)
})

test('a copy with faults is no server', async () => {
  const folder = join(scratch, 'faulty')
  const file = join(pds.dataDir, 'blobs', small.slice(-2), small)
  const bytes = readFileSync(file)
  const damaged = join(scratch, 'damaged')
  // A signature that does not fit.
  expect(await copy(pds.dataDir, ['--to', damaged])).toMatchObject({ code: 0 })
  await inspect(join(damaged, 'holdfast.db'), (db) => db.run(sql`UPDATE repo_node SET bytes = substr(bytes, 2)`))
  await inspect(join(damaged, 'holdfast.db'), (db) =>
    db.run(sql`DELETE FROM record WHERE path LIKE '%note/%' AND repo_id = 1`),
  )
  const faulty = await copy(damaged, ['--to', folder])
  expect(faulty).toMatchObject({ code: 1, text: expect.stringContaining('faults; no server will start with it') })
  expect(await thrownBy(startOn(folder, {}))).toThrow('holds an unfinished copy')

  // A blob that is lost at the source is lost at the target, and does not keep the rest from moving.
  writeFileSync(file, 'other bytes')
  const lossy = await copy(pds.dataDir, ['--to', join(scratch, 'lossy')])
  writeFileSync(file, bytes)
  expect(lossy).toMatchObject({ code: 0 })
  expect(lossy.text).toContain(`blob ${small} is missing or damaged at the source`)
})
