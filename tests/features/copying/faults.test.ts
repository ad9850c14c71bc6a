/**
 * What `holdfast verify` and `holdfast copy` say when something is missing, damaged, foreign or shut: which database,
 * table, row, file or object it is, and what to do. Never the words of a driver alone, nor a stack.
 */
import { Database } from 'bun:sqlite'
import { SQL } from 'bun'
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { emptyDatabase, postgresServer, type TestDatabase } from '../../support/servers/postgres.ts'
import { runProgram, withoutPrivileges } from '../../support/servers/program.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { setUp } from '../../support/set-up.ts'

setDefaultTimeout(60_000)

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-copy-faults-'))
chmodSync(scratch, 0o755)
const bucket = setUp(startBucket)
const postgres = setUp(postgresServer)
let publicUrl: string
/** A stopped server with two accounts and two blobs. */
let source: string
let alice: TestAccount
let [cid, other] = [] as unknown as [string, string]
const databases: TestDatabase[] = []

beforeAll(async () => {
  const pds = await startPdsOnFile({ blobs: { store: 'folder' } })
  publicUrl = pds.url
  alice = await createAccount(pds, 'alice')
  await createAccount(pds, 'bob')
  const upload = async (fill: number) =>
    (
      await alice.call('com.atproto.repo.uploadBlob', {
        method: 'POST',
        body: new Uint8Array(1000).fill(fill),
        headers: { 'content-type': 'image/png' },
      })
    ).body.blob
  const blobs = [await upload(1), await upload(2)]
  ;[cid, other] = blobs.map((blob) => blob.ref.$link) as [string, string]
  for (const text of ['one', 'two', 'three'])
    await alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'org.example.note', record: { $type: 'org.example.note', text, blobs } },
    })
  await pds.stop()
  source = join(scratch, 'source')
  cpSync(pds.dataDir, source, { recursive: true })
  await pds[Symbol.asyncDispose]()
})
afterEach(() => {
  bucket.fault = null
  bucket.intercept = null
})
afterAll(async () => {
  for (const { drop } of databases) await drop()
  rmSync(scratch, { recursive: true })
})

let made = 0
const place = () => join(scratch, String(made++))
/** A copy of the stopped server's data directory, changed. */
const changed = (change: (dir: string) => unknown): string => {
  const dir = place()
  cpSync(source, dir, { recursive: true })
  change(dir)
  return dir
}
const inDatabase = (dir: string, ...statements: string[]) => {
  const db = new Database(join(dir, 'holdfast.db'))
  for (const statement of statements) db.run(statement)
  db.close()
}
const blobFile = (dir: string) => join(dir, 'blobs', cid.slice(-2), cid)
const emptyPostgres = async () => {
  const database = await emptyDatabase()
  databases.push(database)
  return database.databaseUrl
}
const inPostgres = async (url: string, ...statements: string[]) => {
  await using sql = new SQL({ adapter: 'postgres', url, max: 1 })
  for (const statement of statements) await sql.unsafe(statement)
}
const envOf = (dir: string, env: Record<string, string> = {}): Record<string, string> => ({
  SERVICE_DATA_DIR: dir,
  SERVICE_PUBLIC_URL: publicUrl,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
  SERVICE_BLOBS_S3_ENDPOINT: bucket.primary.s3Endpoint,
  SERVICE_BLOBS_S3_ACCESS_KEY_ID: bucket.primary.s3AccessKeyId,
  SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: bucket.primary.s3SecretAccessKey.reveal(),
  SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
  ...env,
})
const run = async (words: string[], dir: string, env: Record<string, string> = {}) => {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(envOf(dir, env), lines), [...words, '--quick', '--dev'])
  return { code, text: lines.join('\n') }
}
const verify = (dir: string, env?: Record<string, string>) => run(['verify'], dir, env)
const copy = (dir: string, words: string[], env?: Record<string, string>) => run(['copy', ...words], dir, env)

/** It failed, said so in these words, and not in those of our code. */
function expectSaid({ code, text }: { code: number; text: string }, ...words: (string | RegExp)[]): void {
  for (const word of words)
    expect(text).toMatch(
      typeof word === 'string' ? new RegExp(word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)) : word,
    )
  expect(text).not.toMatch(/\n\s+at |^\s+at |undefined|\[object/)
  expect(code).toBe(1)
}

describe('a database that is not that of a server', () => {
  test('a database that is missing is not copied, nor created', async () => {
    const dir = place()
    for (const said of [await verify(dir), await copy(dir, ['--to', place()])])
      expectSaid(said, `there is no database at ${dir}/holdfast.db`)
    expect(existsSync(join(dir, 'holdfast.db'))).toBe(false)
  })

  test('is no database, or cut', async () => {
    const text = changed((dir) => writeFileSync(join(dir, 'holdfast.db'), 'not a database '.repeat(500)))
    const cut = changed((dir) => truncateSync(join(dir, 'holdfast.db'), 300_000))
    for (const said of [await verify(text), await copy(text, ['--to', place()])])
      expectSaid(said, `${text}/holdfast.db is not a database`, 'restore a backup')
    for (const said of [await verify(cut), await copy(cut, ['--to', place()])])
      expectSaid(said, `${cut}/holdfast.db is damaged`, 'restore a backup')
  })

  test('is of something else, and stays as it is', async () => {
    const dir = place()
    mkdirSync(dir)
    inDatabase(dir, 'CREATE TABLE precious (id INTEGER)')
    const url = await emptyPostgres()
    await inPostgres(url, 'CREATE TABLE precious (id BIGINT)')
    for (const env of [{}, { SERVICE_DATABASE_URL: url }] as Record<string, string>[])
      for (const said of [await verify(dir, env), await copy(dir, ['--to', place()], env)])
        expectSaid(said, 'is not of a server: it has other tables (precious)', 'Set database_url')
    const tables = new Database(join(dir, 'holdfast.db')).query('SELECT name FROM sqlite_schema').all()
    expect(tables).toEqual([{ name: 'precious' }])
    await inPostgres(url, 'DROP TABLE precious')
    expectSaid(await verify(dir, { SERVICE_DATABASE_URL: url }), `the database ${url} is empty`)
  })

  test('is not there, or does not let the server in', async () => {
    const at = (change: (url: URL) => void) => {
      const url = new URL(postgres.url('postgres'))
      change(url)
      return url.href
    }
    const http = Bun.serve({ port: 0, fetch: () => new Response('no') })
    await inPostgres(postgres.url('postgres'), 'CREATE ROLE weak LOGIN')
    const own = await emptyPostgres()
    const cases: [url: string, ...words: (string | RegExp)[]][] = [
      [at((url) => (url.port = '1')), 'no PostgreSQL answers at 127.0.0.1:1', 'check the address'],
      [
        at((url) => (url.hostname = 'nowhere.invalid')),
        'no PostgreSQL answers at nowhere.invalid',
        'check the address',
      ],
      [
        at((url) => (url.port = String(http.port))),
        `no PostgreSQL answers at 127.0.0.1:${http.port}`,
        'check the address',
      ],
      [
        at((url) => (url.pathname = '/absent')),
        '/absent does not exist',
        "create it with CREATE DATABASE absent TEMPLATE template0 ENCODING 'UTF8'",
      ],
      [at((url) => (url.username = 'stranger')), 'refuses the user "stranger"', 'check the user and the password'],
      [own.replace('postgres@', 'weak@'), 'the user "weak" lacks rights in the database', 'make it the owner'],
      ['postgres://::::', 'the address of the database is malformed', 'postgres://user:password@host:port/database'],
    ]
    for (const [url, ...words] of cases) {
      if (!url.includes('weak@')) expectSaid(await verify(source, { SERVICE_DATABASE_URL: url }), ...words)
      expectSaid(await copy(source, ['--to', url]), ...words)
    }
    await http.stop(true)
  })

  test('is a copy that has not ended', async () => {
    const url = await emptyPostgres()
    expect((await copy(source, ['--to', url])).code).toBe(0)
    await inPostgres(
      url,
      "INSERT INTO schema_migration (number, name, applied_at) VALUES (999999999, 'copy-under-way', 1)",
    )
    for (const said of [
      await verify(source, { SERVICE_DATABASE_URL: url }),
      await copy(source, ['--to', place()], { SERVICE_DATABASE_URL: url }),
    ])
      expectSaid(
        said,
        `the database ${url} holds an unfinished copy`,
        'run "holdfast copy" or "holdfast restore" again',
      )
  })

  test('lacks a table, or rights to one', async () => {
    const url = await emptyPostgres()
    expect((await copy(source, ['--to', url])).code).toBe(0)
    const weak = { SERVICE_DATABASE_URL: url.replace('postgres@', 'weak@') }
    for (const said of [await verify(source, weak), await copy(source, ['--to', place()], weak)])
      expectSaid(said, 'the user "weak" lacks rights in the database', 'make it the owner')
    await inPostgres(url, 'DROP TABLE record')
    const dir = changed((each) => inDatabase(each, 'DROP TABLE record'))
    for (const env of [{ SERVICE_DATABASE_URL: url }, {}] as Record<string, string>[]) {
      expectSaid(await verify(dir, env), 'is damaged: it lacks record', 'restore a backup')
      expectSaid(await copy(dir, ['--to', place()], env), 'it lacks the tables record', 'Restore a backup')
    }
  })
})

describe('a row that is damaged', () => {
  const RESTORE = 'restore a backup with "holdfast restore"'
  test.each([
    [
      'the key of an account',
      "UPDATE account SET signing_key_wrapped = 'x' WHERE handle = 'alice.test'",
      'cannot be read (malformed secret)',
    ],
    ['nodes that end early', 'UPDATE repo SET fresh = substr(fresh, 1, 50)', 'cannot be read'],
    ['a commit', "UPDATE repo SET commit_block = x'a1'", 'the commit cannot be read (Value ends early)'],
    ['a tree', "UPDATE repo SET data = x'01'", 'the commit names another tree than the row'],
    ['a record', 'UPDATE record SET value = substr(value, 3)', /record org\.example\.note\/\w+ does not match its CID/],
    ['a record that is gone', 'DELETE FROM record', /record org\.example\.note\/\w+ is missing/],
    ['a repository that is gone', 'DELETE FROM repo', 'the account has no repository'],
  ])('is told by what it belongs to: %s', async (_, statement, words) => {
    const dir = changed((each) => inDatabase(each, statement))
    expectSaid(await verify(dir), new RegExp(`^${alice.did}: .*`, 'm'), words, RESTORE)
    expectSaid(
      await copy(dir, ['--to', place()]),
      new RegExp(`^${alice.did}: .*`, 'm'),
      words,
      'no server will start with it',
    )
  })

  test('is told by its table and key where the target does not take it', async () => {
    const huge = changed((dir) =>
      inDatabase(dir, "UPDATE account SET created_at = 9223372036854775807 WHERE handle = 'alice.test'"),
    )
    const text = changed((dir) =>
      inDatabase(dir, "UPDATE account SET created_at = 'yesterday' WHERE handle = 'alice.test'"),
    )
    for (const dir of [huge, text]) {
      expectSaid(
        await verify(dir),
        '1 rows of the table account have a value in the column created_at that is not INTEGER',
        RESTORE,
      )
      expectSaid(
        await copy(dir, ['--to', await emptyPostgres()]),
        `the row did = ${alice.did} of the table account is damaged`,
      )
    }
  })
})

describe('a key that is missing', () => {
  test('is told before anything is copied', async () => {
    const dir = changed((each) => rmSync(join(each, 'master.key')))
    const target = place()
    for (const said of [await verify(dir), await copy(dir, ['--to', target])])
      expectSaid(said, 'there is no master key', `restore ${dir}/master.key`)
    expect(readdirSync(target)).not.toContain('holdfast.db')
  })
})

describe('a blob that cannot be had', () => {
  test('is told by its file', async () => {
    const gone = changed((dir) => rmSync(blobFile(dir)))
    const folder = changed((dir) => {
      rmSync(blobFile(dir))
      mkdirSync(blobFile(dir))
    })
    const wrong = changed((dir) => writeFileSync(blobFile(dir), 'other'))
    expectSaid(
      await verify(gone),
      `blob ${cid}: the file ${blobFile(gone)} is missing`,
      'Put the files back from a backup',
    )
    expectSaid(await verify(wrong), `blob ${cid}: the file ${blobFile(wrong)} has other content`)
    expectSaid(await verify(folder), `blob ${cid}: the file ${blobFile(folder)} cannot be read (EISDIR`)
    expectSaid(await copy(folder, ['--to', place()]), `the file ${blobFile(folder)} cannot be read (EISDIR`, 'fix that')
    for (const dir of [gone, wrong])
      expect(await copy(dir, ['--to', place()])).toMatchObject({
        code: 0,
        text: expect.stringContaining(`blob ${cid} is missing or damaged at the source`),
      })
  })

  test('is told by its folder, if all are missing', async () => {
    const dir = changed((each) => rmSync(join(each, 'blobs'), { recursive: true }))
    const { text, ...said } = await verify(dir)
    expectSaid({ text, ...said }, `blobs: the database lists some, but the folder ${dir}/blobs is missing`)
    expect(text).not.toContain(cid)
    expectSaid(
      await copy(dir, ['--to', place()]),
      `the folder ${dir}/blobs is missing`,
      'mount or restore it, or create it',
    )
    mkdirSync(join(dir, 'blobs'))
    expect((await copy(dir, ['--to', place()])).code).toBe(0)
  })

  test('is told by its object, or its bucket', async () => {
    const store = `${bucket.primary.s3Endpoint}/copies/moved/`
    const inBucket = {
      SERVICE_BLOBS_STORE: 's3',
      SERVICE_BLOBS_S3_BUCKET: 'copies',
      SERVICE_BLOBS_S3_KEY_PREFIX: 'moved/',
    }
    expect((await copy(source, ['--blobs', 's3://copies/moved'])).code).toBe(0)
    const keyOf = (each: string) => `moved/${each.slice(7, 9)}/${each}`
    await bucket.write(keyOf(cid), new Uint8Array(1000).fill(9))
    bucket.delete(keyOf(other))
    expectSaid(
      await verify(source, inBucket),
      `blob ${cid}: the object ${keyOf(cid)} of the bucket ${store} has other content`,
      `blob ${other}: the object ${keyOf(other)} of the bucket ${store} is missing`,
      'older versions',
    )
    bucket.delete(keyOf(cid))
    expectSaid(await verify(source, inBucket), `blobs: the database lists some, but the bucket ${store} is empty`)
    expectSaid(
      await copy(source, ['--to', place()], inBucket),
      `the bucket ${store} is empty`,
      'name the bucket and prefix',
    )

    const absent = { ...inBucket, SERVICE_BLOBS_S3_BUCKET: 'absent' }
    const away = { ...inBucket, SERVICE_BLOBS_S3_ENDPOINT: 'http://127.0.0.1:1' }
    for (const said of [
      await verify(source, absent),
      await copy(source, ['--to', place()], absent),
      await copy(source, ['--blobs', 's3://absent/moved']),
    ])
      expectSaid(said, '/absent/moved/ does not exist (404 NoSuchBucket)', 'create it')
    for (const said of [
      await verify(source, away),
      await copy(source, ['--to', place()], away),
      await copy(source, ['--blobs', 's3://copies/moved'], { SERVICE_BLOBS_S3_ENDPOINT: 'http://127.0.0.1:1' }),
    ])
      expectSaid(said, 'the bucket http://127.0.0.1:1/copies/moved/ cannot be reached', 'check blobs.s3_endpoint')
    bucket.fault = 403
    for (const said of [
      await verify(source, inBucket),
      await copy(source, ['--to', place()], inBucket),
      await copy(source, ['--blobs', 's3://copies/moved']),
    ])
      expectSaid(said, `the bucket ${store} refuses this server (403`, 'check the keys of [blobs]')
    bucket.fault = null
    bucket.intercept = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Back soon</html>')
      return true
    }
    for (const said of [await verify(source, inBucket), await copy(source, ['--blobs', 's3://copies/moved'])])
      expectSaid(said, `the server that answers for the bucket ${store} is not an S3 store`, 'check blobs.s3_endpoint')
  })
})

describe('without rights', () => {
  const asOwner = async (words: string[], dir: string) => {
    const { code, out, err } = await runProgram([...words, '--quick', '--dev'], envOf(dir), withoutPrivileges)
    return { code, text: `${out}${err}` }
  }
  const shut = (path: (dir: string) => string) => {
    const dir = changed(() => {})
    chmodSync(path(dir), 0)
    return dir
  }

  test('the database, a blob and the target are named, and what to do', async () => {
    const target = place()
    const database = shut((dir) => join(dir, 'holdfast.db'))
    const blob = shut(blobFile)
    const open = () => {
      const dir = place()
      mkdirSync(dir)
      return dir
    }
    for (const said of [await asOwner(['verify'], database), await asOwner(['copy', '--to', open()], database)])
      expectSaid(said, `${database}/holdfast.db cannot be used by its owner`, 'chmod -R u+rwX')
    expectSaid(
      await asOwner(['verify'], blob),
      `blob ${cid}: the file ${blobFile(blob)} cannot be read: `,
      'chmod -R u+rwX',
    )
    expectSaid(
      await asOwner(['copy', '--to', open()], blob),
      `the file ${blobFile(blob)} cannot be read (EACCES`,
      'fix that',
    )
    mkdirSync(target)
    chmodSync(target, 0o500)
    expectSaid(
      await asOwner(
        ['copy', '--to', target],
        changed(() => {}),
      ),
      target,
      /run as its owner|chmod/,
    )
  })
})

test('a target that is no folder, or the server itself, is refused in the words of the option', async () => {
  const file = place()
  writeFileSync(file, 'x')
  for (const target of [file, join(file, 'below')])
    expectSaid(await copy(source, ['--to', target]), `${target} is not a folder`, '--to')
  expect(await copy(source, ['--to', source])).toMatchObject({
    code: 2,
    text: expect.stringContaining('where the server already is'),
  })
})
