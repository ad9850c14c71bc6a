/** A folder that cannot move in, or only a part of it: what is said, and what a later run does. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import { matchAppPassword } from '../../../src/features/access/sessions/app-passwords.ts'
import { invalidRequest } from '../../../src/http/errors.ts'
import { createAccount, logIn } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { inProcessNamespace, seesAllProcesses } from '../../support/faults/process-namespace.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { PROGRAM, runProgram, withoutPrivileges } from '../../support/servers/program.ts'
import { FORMER_PASSWORD, LivedFolder, type LivedPerson } from '../../support/servers/reference-folder.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const URL_OF_BOTH = 'http://localhost:2599'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-moving-'))
const png = new Uint8Array(5000).fill(3)

/** A folder of three people, which each test gets a copy of. */
let original: LivedFolder
let [anna, otto, rosa]: LivedPerson[] = []
let session: ReturnType<LivedFolder['openSession']>
let count = 0
let folder: string
let dataDir: string

beforeAll(() => {
  original = lived(join(scratch, 'original'))
  anna = original.add({ name: 'anna', blobs: [png] })
  otto = original.add({ name: 'otto', records: 20 })
  rosa = original.add({ name: 'rosa' })
  session = original.openSession(anna.did)
  original.signInBrowser(anna.did)
  original.close()
})
beforeEach(() => {
  count++
  folder = join(scratch, `old-${count}`)
  dataDir = join(scratch, `new-${count}`)
  cpSync(original.path, folder, { recursive: true })
})
afterAll(() => rmSync(scratch, { recursive: true }))

const lived = (path: string) =>
  new LivedFolder(path, { url: URL_OF_BOTH, serverDid: 'did:web:localhost%3A2599', domain: 'test' })

let databaseUrl: string | undefined
const env = () => ({
  SERVICE_DATA_DIR: dataDir,
  ...(databaseUrl !== undefined && { SERVICE_DATABASE_URL: databaseUrl }),
  SERVICE_PUBLIC_URL: URL_OF_BOTH,
  SERVICE_PORT: '1',
  SERVICE_LOG_LEVEL: 'error',
})

async function move(...words: string[]): Promise<[code: number, text: string]> {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(env(), lines), ['import-reference', folder, ...words, '--dev'])
  return [code, lines.join('\n')]
}

const actorFile = (person: LivedPerson | undefined, name: string) =>
  join(original.actorFolder(person!.did).replace(original.path, folder), name)

function change(path: string, statement: string): void {
  const database = new Database(path)
  database.run(statement)
  database.close()
}

const arrived = async () => {
  const pds = new Database(join(dataDir, 'holdfast.db'), { readonly: true })
  const rows = pds.query('SELECT handle FROM account ORDER BY handle').all() as { handle: string }[]
  pds.close()
  return rows.map(({ handle }) => handle)
}

test('--check verifies everything and writes nothing', async () => {
  const [code, text] = await move('--check')
  expect([code, text]).toEqual([0, expect.stringMatching(/records\s+26/)])
  expect(existsSync(dataDir)).toBe(false)
})

test('--json is the report as a document, with what is to be set and without secrets', async () => {
  writeFileSync(
    join(folder, 'pds.env'),
    'PDS_ADMIN_PASSWORD=very-secret\nPDS_REDIS_SCRATCH_ADDRESS=x\nPDS_BLOB_UPLOAD_LIMIT=7\n',
  )
  const [code, text] = await move('--check', '--json')
  expect(text).not.toContain('very-secret')
  expect([code, JSON.parse(text)]).toMatchObject([
    0,
    {
      counts: { accounts: 3, records: 26, blobs: 1, blobBytes: 5000, sessions: 0 },
      losses: { sessions: 1 },
      rotationKey: false,
      toSet: { 'blobs.max_blob_size': '7' },
      dropped: { PDS_REDIS_SCRATCH_ADDRESS: 'rate limits of several servers are shared in the database' },
      faults: [],
    },
  ])
})

test('what is to be set has the form of the configuration, and secrets are named without their value', async () => {
  writeFileSync(join(folder, 'pds.env'), 'PDS_ADMIN_PASSWORD=very-secret\nPDS_EMAIL_FROM_ADDRESS=pds@example.com\n')
  const [code, text] = await move('--check')
  expect([code, text]).toEqual([0, expect.stringContaining('  SERVICE_EMAIL_FROM=pds@example.com\n')])
  expect(text).toContain('  SERVICE_ADMIN_TOKEN (as in the old environment)')
  expect(text).not.toContain('very-secret')
})

test('with --json a move prints its report alone to standard output, whatever the log says', () => {
  const { exitCode, stdout } = Bun.spawnSync([...PROGRAM, 'import-reference', folder, '--json', '--dev'], {
    env: { ...process.env, ...env(), SERVICE_LOG_LEVEL: 'debug' },
  })
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout.toString())).toMatchObject({ moved: expect.any(Object), faults: [] })
})

test('without its environment, the report says how many sessions cannot go on, and why', async () => {
  rmSync(join(folder, 'pds.env'))
  const [code, text] = await move('--check')
  expect([code, text]).toEqual([
    0,
    expect.stringMatching(/sessions\s+1: PDS_JWT_SECRET is not known: name the environment with --env/),
  ])
  expect(text).toContain('this server cannot change identities made by the old one')
})

const readScript = `const { Database } = require('bun:sqlite'); const db = new Database(process.argv[1]); db.run('PRAGMA journal_mode = WAL');
    db.query('SELECT count(*) FROM actor').get(); console.log('open'); setInterval(() => {}, 1000)`

test('a folder in use is refused', async () => {
  const user = Bun.spawn([process.execPath, '-e', readScript, join(folder, 'account.sqlite')], { stdout: 'pipe' })
  try {
    await user.stdout.getReader().read()
    expect(await move()).toEqual([
      1,
      expect.stringMatching(/account\.sqlite (is|may be) in use.*: stop the old server/),
    ])
  } finally {
    user.kill('SIGKILL')
    await user.exited
  }
  if (seesAllProcesses) expect((await move())[0]).toBe(0)
})

test('a folder is refused in a container that does not see who uses it', async () => {
  const user = Bun.spawn([process.execPath, '-e', readScript, join(folder, 'account.sqlite')], { stdout: 'pipe' })
  try {
    await user.stdout.getReader().read()
    const program = Bun.spawn([...inProcessNamespace(), ...PROGRAM, 'import-reference', folder, '--check', '--dev'], {
      cwd: scratch,
      env: { PATH: process.env['PATH'] ?? '', HOME: scratch, ...env() },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const text = await new Response(program.stderr).text()
    expect([await program.exited, text]).toEqual([1, expect.stringContaining('account.sqlite may be in use')])
  } finally {
    user.kill('SIGKILL')
    await user.exited
  }
})

/** Leave a log beside the database of accounts, as a server that is killed does. */
async function leaveLog(): Promise<void> {
  const script = `const { Database } = require('bun:sqlite'); const db = new Database(process.argv[1]); db.run('PRAGMA journal_mode = WAL');
    db.run("UPDATE actor SET handle = 'logged.test' WHERE handle = 'rosa.test'"); console.log('written'); setInterval(() => {}, 1000)`
  const user = Bun.spawn([process.execPath, '-e', script, join(folder, 'account.sqlite')], { stdout: 'pipe' })
  await user.stdout.getReader().read()
  user.kill('SIGKILL')
  await user.exited
  expect(existsSync(join(folder, 'account.sqlite-wal'))).toBe(true)
}

test('a server that was killed has left a log: what is in it comes along', async () => {
  await leaveLog()
  if (!seesAllProcesses)
    return expect(await move()).toEqual([1, expect.stringContaining('If it was killed, start it and stop it once')])
  expect((await move())[0]).toBe(0)
  expect(await arrived()).toEqual(['anna.test', 'logged.test', 'otto.test'])
})

test('a database that is copied to be read leaves no file, even while the command runs', async () => {
  await leaveLog()
  rmSync(join(folder, 'account.sqlite-shm'))
  chmodSync(join(folder, 'account.sqlite'), 0o400)
  const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith('holdfast-reading-'))
  const before = copies()
  const lines: string[] = []
  const terminal = quietTerminal(env(), lines)
  const seen: string[] = []
  const out = (text: string) => {
    seen.push(...copies().filter((name) => !before.includes(name)))
    lines.push(text)
  }
  expect(await runCommand({ ...terminal, out }, ['import-reference', folder, '--dev'])).toBe(0)
  expect(seen).toEqual([])
  expect(await arrived()).toEqual(['anna.test', 'logged.test', 'otto.test'])
})

test('what is no folder, or not one of the reference, is refused by name', async () => {
  rmSync(join(folder, 'account.sqlite'))
  expect(await move()).toEqual([1, expect.stringContaining('it has no account.sqlite')])
  rmSync(folder, { recursive: true })
  expect(await move()).toEqual([1, expect.stringContaining(`there is no folder at ${folder}`)])
})

test('a folder that was copied in part is refused, or its accounts are named', async () => {
  rmSync(actorFile(otto, 'store.sqlite'))
  expect(await move('--check')).toEqual([1, expect.stringMatching(/did:plc:\w+: .*store\.sqlite is missing/)])
  rmSync(join(folder, 'sequencer.sqlite'))
  expect(await move()).toEqual([1, expect.stringContaining('sequencer.sqlite is missing: the folder is incomplete')])
})

test('a newer and an older schema are refused, with what to do', async () => {
  change(join(folder, 'account.sqlite'), "INSERT INTO kysely_migration VALUES ('008', '')")
  expect(await move()).toEqual([1, expect.stringContaining('newer version of the reference (migration 008')])
  change(join(folder, 'account.sqlite'), "DELETE FROM kysely_migration WHERE name > '004'")
  expect(await move()).toEqual([1, expect.stringContaining('upgrade the reference and start it once')])
})

test('a database that is damaged is named', async () => {
  writeFileSync(join(folder, 'account.sqlite'), 'SQLite format 3\0 and nothing else')
  expect(await move()).toEqual([1, expect.stringMatching(/account\.sqlite is damaged/)])
})

test('the folder of another host is refused', async () => {
  writeFileSync(join(folder, 'pds.env'), 'PDS_HOSTNAME=pds.elsewhere.example\n')
  expect(await move()).toEqual([
    1,
    expect.stringContaining('is of pds.elsewhere.example, and public_url names localhost'),
  ])
})

test('an account behind an entryway cannot move', async () => {
  writeFileSync(join(folder, 'pds.env'), 'PDS_ENTRYWAY_URL=https://entry.example\n')
  expect(await move()).toEqual([1, expect.stringContaining('behind an entryway')])
})

const damages: [name: string, damage: () => void, fault: RegExp][] = [
  [
    'a missing block',
    () =>
      change(
        actorFile(otto, 'store.sqlite'),
        'DELETE FROM repo_block WHERE size > 100 AND cid <> (SELECT cid FROM repo_root)',
      ),
    /MST|missing|does not hold/,
  ],
  [
    'a block with other content',
    () =>
      change(
        actorFile(otto, 'store.sqlite'),
        "UPDATE repo_block SET content = x'a0' WHERE cid = (SELECT cid FROM record LIMIT 1)",
      ),
    /does not contain the record at/,
  ],
  ['no key', () => rmSync(actorFile(otto, 'key')), /key is missing/],
  ['an empty key', () => writeFileSync(actorFile(otto, 'key'), ''), /a key has 32 bytes/],
  [
    'a key of zeros',
    () => writeFileSync(actorFile(otto, 'key'), new Uint8Array(32)),
    /key is damaged: its number is not a valid key/,
  ],
  [
    'preferences that are no JSON',
    () => change(actorFile(otto, 'store.sqlite'), "INSERT INTO account_pref (name, valueJson) VALUES ('x', '{')"),
    /store\.sqlite is damaged: preference 1 is malformed/,
  ],
  ['half a key', () => writeFileSync(actorFile(otto, 'key'), new Uint8Array(16)), /a key has 32 bytes/],
  ['no repository', () => change(actorFile(otto, 'store.sqlite'), 'DELETE FROM repo_root'), /holds no repository/],
]
for (const [name, damage, fault] of damages)
  test(`an account with ${name} is named and left out, the others come, and it follows once it is repaired`, async () => {
    damage()
    const [checked, report] = await move('--check')
    expect([checked, report]).toEqual([1, expect.stringMatching(new RegExp(`${otto!.did}.*${fault.source}`))])
    const [code, text] = await move()
    expect([code, text]).toEqual([1, expect.stringMatching(new RegExp(`${otto!.did}.*${fault.source}`))])
    expect(text).toContain('1 accounts did not come: correct the faults, and run the same command again')
    expect(await arrived()).toEqual(['anna.test', 'rosa.test'])
    rmSync(folder, { recursive: true })
    cpSync(original.path, folder, { recursive: true })
    expect(await move()).toEqual([
      0,
      expect.stringContaining('1 accounts moved in with 20 records and 0 blobs, 2 had come before'),
    ])
    expect(await arrived()).toEqual(['anna.test', 'otto.test', 'rosa.test'])
  })

test('an account with text that PostgreSQL cannot store is named and left out, and the others come', async () => {
  const place = await testDatabase()
  databaseUrl = place.databaseUrl
  try {
    const accounts = new Database(join(folder, 'account.sqlite'))
    accounts
      .query('INSERT INTO app_password SELECT did, ?, passwordScrypt, NULL, 0 FROM account WHERE did = ?')
      .run('my\0phone', otto!.did)
    accounts.close()
    const [code, text] = await move()
    expect([code, text]).toEqual([1, expect.stringContaining(`${otto!.did}: text must not contain NUL characters`)])
    expect(text).toContain('2 accounts moved in')
  } finally {
    databaseUrl = undefined
    await place.drop()
  }
})

test('an event and a reserved key that are malformed are named and left out, and all else comes', async () => {
  const reserved = join(folder, 'actors', 'reserved_keys')
  mkdirSync(reserved)
  writeFileSync(join(reserved, 'did:key:zEmpty'), '')
  change(join(folder, 'sequencer.sqlite'), "UPDATE repo_seq SET event = x'ff' WHERE seq = 2")
  for (const words of [['--check'], []]) {
    const [code, text] = await move(...words)
    expect([code, text]).toEqual([1, expect.stringMatching(/event 2 in .*sequencer\.sqlite is malformed/)])
    expect(text).toContain('did:key:zEmpty is damaged: a key has 32 bytes')
  }
  expect(await arrived()).toEqual(['anna.test', 'otto.test', 'rosa.test'])
  expect(await move()).toEqual([1, expect.stringContaining('has already moved in')])
})

test('a blob that is missing or has other content is named, and its account comes without it', async () => {
  const blob = join(folder, 'blocks', anna!.did, anna!.blobs[0]!)
  writeFileSync(blob, 'something else')
  expect(await move('--check')).toEqual([1, expect.stringContaining(`blob ${anna!.blobs[0]} has other content`)])
  rmSync(blob)
  expect(await move()).toEqual([1, expect.stringContaining(`blob ${anna!.blobs[0]} is missing`)])
  expect(await arrived()).toHaveLength(3)
})

test('blobs whose folder is not there at all stop the move before anything is written', async () => {
  rmSync(join(folder, 'blocks'), { recursive: true })
  for (const words of [['--check'], []])
    expect(await move(...words)).toEqual([
      1,
      expect.stringMatching(/has 1 blobs, and .*blocks is missing: mount or copy it/),
    ])
  expect(await arrived()).toEqual([])
})

test('an account that the old server has written to since it came is named', async () => {
  rmSync(actorFile(otto, 'key'))
  expect((await move())[0]).toBe(1)
  change(actorFile(rosa, 'store.sqlite'), "UPDATE repo_root SET rev = '7zzzzzzzzzzzz'")
  expect(await move()).toEqual([
    1,
    expect.stringContaining(`${rosa!.did}: the old server has written to it since it came here`),
  ])
})

test('a move does not go on once the old server has run', async () => {
  rmSync(actorFile(otto, 'key'))
  expect((await move())[0]).toBe(1)
  change(
    join(folder, 'sequencer.sqlite'),
    "INSERT INTO repo_seq (did, eventType, event, sequencedAt) VALUES ('did:web:x', 'identity', x'a0', '')",
  )
  expect(await move()).toEqual([
    1,
    expect.stringContaining('the old server has run since the move began: start again with an empty data folder'),
  ])
})

const later: [what: string, database: 'account' | 'actor', statement: (did: string) => string][] = [
  ['password', 'account', (did) => `UPDATE account SET passwordScrypt = 'ab:cd' WHERE did = '${did}'`],
  ['app password', 'account', (did) => `INSERT INTO app_password VALUES ('${did}', 'new', 'ab:cd', '', 0)`],
  ['session', 'account', (did) => `INSERT INTO refresh_token VALUES ('new', '${did}', '', NULL, NULL)`],
  ['takedown', 'account', (did) => `UPDATE actor SET takedownRef = 'mod-1' WHERE did = '${did}'`],
  ['deactivation', 'account', (did) => `UPDATE actor SET deactivatedAt = '2026-01-01' WHERE did = '${did}'`],
  ['preference', 'actor', () => `INSERT INTO account_pref (name, valueJson) VALUES ('x', '{"$type":"x"}')`],
]
for (const [what, database, statement] of later)
  test(`an account that got another ${what} at the old server since it came is named`, async () => {
    rmSync(actorFile(otto, 'key'))
    expect((await move())[0]).toBe(1)
    const path = database === 'account' ? join(folder, 'account.sqlite') : actorFile(rosa, 'store.sqlite')
    change(path, statement(rosa!.did))
    const [code, text] = await move()
    expect([code, text]).toEqual([
      1,
      expect.stringContaining(`${rosa!.did}: the old server has written to it since it came here`),
    ])
    expect(text).not.toContain(`${anna!.did}:`)
  })

test('an account that the old server has deleted since it came is named', async () => {
  rmSync(actorFile(otto, 'key'))
  expect((await move())[0]).toBe(1)
  change(join(folder, 'account.sqlite'), `DELETE FROM actor WHERE did = '${rosa!.did}'`)
  expect(await move()).toEqual([
    1,
    expect.stringContaining(`${rosa!.did}: the old server has deleted it since it came here`),
  ])
})

for (const signOut of ['DELETE FROM oauth_device_account', 'DELETE FROM oauth_device'])
  test(`browsers come once, so one that was signed out stays so when the move is repeated (${signOut})`, async () => {
    rmSync(actorFile(otto, 'key'))
    expect((await move())[0]).toBe(1)
    const path = join(dataDir, 'holdfast.db')
    change(path, 'DELETE FROM oauth_device_account')
    change(path, signOut)
    cpSync(join(original.actorFolder(otto!.did), 'key'), actorFile(otto, 'key'))
    expect((await move())[0]).toBe(0)
    const pds = new Database(path, { readonly: true })
    expect(pds.query('SELECT count(*) AS count FROM oauth_device_account').get()).toEqual({ count: 0 })
    pds.close()
  })

test('a DID, a handle or an address that exists here already is named, and nothing of it is touched', async () => {
  await using pds = await startPdsOnFile({}, { publicUrl: URL_OF_BOTH })
  dataDir = pds.dataDir
  await createAccount(pds, 'anna', { email: 'anna@elsewhere.example' })
  await createAccount(pds, 'otherwise', { email: 'otto@example.com' })
  await pds.stop()
  const [checked, report] = await move('--check')
  expect([checked, report]).toEqual([1, expect.stringContaining(`${anna!.did}: the handle anna.test is taken here`)])
  const [code, text] = await move()
  expect([code, text]).toEqual([1, expect.stringContaining(`${otto!.did}: its email address is taken here`)])
  expect(await arrived()).toEqual(['anna.test', 'otherwise.test', 'rosa.test'])
})

test('a move that is killed and run again has the same result', async () => {
  rmSync(folder, { recursive: true })
  const large = lived(folder)
  for (let i = 0; i < 60; i++) large.add({ name: `person${i}`, records: 5, blobs: [new Uint8Array(100 + i)] })
  large.close()
  const program = Bun.spawn([...PROGRAM, 'import-reference', folder, '--dev'], {
    cwd: scratch,
    env: { PATH: process.env['PATH'] ?? '', HOME: scratch, ...env() },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const path = join(dataDir, 'holdfast.db')
  await until(async () => existsSync(path) && (await arrived().catch(() => [])).length > 5)
  program.kill('SIGKILL')
  await program.exited
  const before = (await arrived()).length
  expect(before).toBeLessThan(60)
  expect(await move()).toEqual([0, expect.stringMatching(/\d+ accounts moved in .* had come before/)])
  expect(await arrived()).toHaveLength(60)
  const lines: string[] = []
  expect(await runCommand(quietTerminal(env(), lines), ['verify', '--quick', '--dev'])).toBe(0)
  expect(lines).toEqual(['60 repositories and 60 blobs verified, 0 faults'])
})

test('no space left half-way is said in a sentence, and with more room the same command continues', async () => {
  rmSync(folder, { recursive: true })
  const large = lived(folder)
  for (let i = 0; i < 20; i++) large.add({ name: `person${i}`, blobs: [new Uint8Array(1024 ** 2).fill(i)] })
  large.close()
  const script = `"$@" import-reference ${folder} --dev; mount -o remount,size=200m ${dataDir}
    "$@" import-reference ${folder} --dev && "$@" verify --quick --dev`
  const program = Bun.spawn([...withSmallDisk(dataDir, 12 * 1024 ** 2), 'sh', '-c', script, 'sh', ...PROGRAM], {
    cwd: scratch,
    env: { PATH: process.env['PATH'] ?? '', HOME: scratch, ...env() },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(program.stdout).text(), new Response(program.stderr).text()])
  expect([await program.exited, err]).toEqual([
    0,
    expect.stringContaining('the disk is full: make room, and run the same'),
  ])
  expect(out).toMatch(/\d+ accounts moved in .* had come before/)
  expect(out).toContain('20 repositories and 20 blobs verified, 0 faults')
})

test('blobs come from the bucket of the old server', async () => {
  await using bucket = await startBucket()
  const { s3Bucket, s3Endpoint, s3AccessKeyId, s3SecretAccessKey } = bucket.primary
  const [cid] = anna!.blobs
  renameSync(join(folder, 'blocks'), join(folder, 'gone'))
  writeFileSync(
    join(folder, 'pds.env'),
    [
      `PDS_BLOBSTORE_S3_BUCKET=${s3Bucket}`,
      `PDS_BLOBSTORE_S3_ENDPOINT=${s3Endpoint}`,
      'PDS_BLOBSTORE_S3_FORCE_PATH_STYLE=true',
      `PDS_BLOBSTORE_S3_ACCESS_KEY_ID=${s3AccessKeyId}`,
      `PDS_BLOBSTORE_S3_SECRET_ACCESS_KEY=${s3SecretAccessKey.reveal()}`,
    ].join('\n'),
  )
  expect(await move()).toEqual([1, expect.stringContaining(`blob ${cid} is missing`)])
  rmSync(dataDir, { recursive: true })
  await bucket.write(`blocks/${anna!.did}/${cid}`, png)
  expect(await move()).toEqual([0, expect.stringContaining('3 accounts moved in with 26 records and 1 blobs')])
})

test('a wrong app password writes nothing while old hashes are stored', async () => {
  await using pds = await startPdsOnFile({}, { publicUrl: URL_OF_BOTH })
  dataDir = pds.dataDir
  await pds.stop()
  expect((await move())[0]).toBe(0)
  await pds.restart()
  const wrong = () => invalidRequest('wrong')
  const { counters } = pds.ctx.db
  // What a server does after its start may write in the same moment.
  await until(async () => {
    const before = counters.transactions
    expect(await matchAppPassword(pds.ctx, anna!.did, 'aaaa-bbbb-cccc-dddd', wrong)).toBeNull()
    return counters.transactions === before
  })
})

test('sessions of the old server end 90 days after the move, and nobody else can use their key', async () => {
  await using pds = await startPdsOnFile({}, { publicUrl: URL_OF_BOTH })
  dataDir = pds.dataDir
  await pds.stop()
  expect((await move())[0]).toBe(0)
  await pds.restart()
  const exchange = (token: string) =>
    request(`${pds.url}/xrpc/com.atproto.server.refreshSession`, { method: 'POST', headers: bearer(token) })
  const unknown = original.forge(anna!.did)
  expect(await exchange(unknown)).toMatchObject({ status: 400, body: { error: 'ExpiredToken' } })
  pds.clock.advance({ days: 91 })
  expect(await exchange(session.refreshJwt)).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
  await logIn(pds, anna!, FORMER_PASSWORD)
})

describe('what the user of the command may not read is named', () => {
  const moveWithoutRights = async (...words: string[]): Promise<string> => {
    const { code, err } = await runProgram(['import-reference', folder, ...words, '--dev'], env(), withoutPrivileges)
    expect(code).toBe(1)
    return err
  }
  const faultOf = (path: string) => {
    const user = process.getuid!()
    return `${path} may not be read by this process (user ${user}): copy the old folder, and give the copy to that user with "chown -R ${user}"\n`
  }
  const shut = (path: string) => chmodSync(path, 0)

  for (const part of ['', 'pds.env', 'account.sqlite', 'sequencer.sqlite'])
    test(`${part === '' ? 'the folder' : part}, before anything is written`, async () => {
      const path = join(folder, part)
      if (part === 'pds.env') writeFileSync(path, '')
      shut(path)
      expect(await moveWithoutRights()).toBe(`holdfast import-reference: ${faultOf(path)}`)
      expect(existsSync(dataDir)).toBe(false)
      chmodSync(path, 0o700)
    })

  for (const part of ['key', 'store.sqlite'])
    test(`the ${part} of an account, which comes once it can be read`, async () => {
      const path = actorFile(anna, part)
      shut(path)
      for (const words of [['--check'], []])
        expect(await moveWithoutRights(...words)).toContain(`${anna!.did}: ${faultOf(path)}`)
      chmodSync(path, 0o600)
      expect(await move()).toMatchObject([0, expect.stringContaining('1 accounts moved in')])
    })

  test('the blobs of an account, which comes once they can be read', async () => {
    const path = join(folder, 'blocks', anna!.did)
    shut(path)
    expect(await moveWithoutRights()).toContain(`${anna!.did}: ${path}`)
    chmodSync(path, 0o700)
    expect(await move()).toMatchObject([0, expect.stringContaining('1 accounts moved in')])
  })
})
