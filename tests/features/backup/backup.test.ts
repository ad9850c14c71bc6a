/** Backups of a serving server, and what comes back of them. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { startApp } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { openArchive } from '../../../src/features/operations/backup/backup.ts'
import { lockDirectory } from '../../../src/platform/files/directory-lock.ts'
import { reserveKey } from '../../../src/features/identity/reserved-keys/key-reservation.ts'
import { findReservedKey } from '../../../src/features/identity/reserved-keys/reserved-key-store.ts'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { ADMIN_TOKEN, MASTER_KEY, testConfig } from '../../support/servers/config.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { moveIn, stranger } from '../../support/clients/stranger.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { PROGRAM, runProgram, startProgram } from '../../support/servers/program.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { READER_DID, READER_METHOD, TokenReader } from '../../support/clients/token-reader.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { thrownBy } from '../../support/thrown.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-backup-'))
const PASSPHRASE = 'a passphrase for backups'
let blobCid: string
const { pds } = useWorldOnFile()
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const uploaded = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'the bytes of a blob',
    headers: { 'content-type': 'text/plain' },
  })
  blobCid = uploaded.body.blob.ref.$link
  await post('with a blob', uploaded.body.blob)
})
afterAll(async () => {
  rmSync(scratch, { recursive: true })
})

const post = async (text: string, blob?: unknown) => {
  const record = { $type: 'org.example.note', text, ...(blob === undefined ? {} : { blob }) }
  const answer = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record },
  })
  expect(answer.status).toBe(200)
  return answer.body as { uri: string; cid: string; commit: { rev: string } }
}

/** A command in this process, on a data directory, as an operator would run it. */
async function holdfast(dataDir: string, words: string[], env: Record<string, string> = {}) {
  const lines: string[] = []
  const terminal = quietTerminal(
    { SERVICE_DATA_DIR: dataDir, SERVICE_PUBLIC_URL: pds.url, SERVICE_PORT: '1', SERVICE_LOG_LEVEL: 'error', ...env },
    lines,
  )
  const code = await runCommand(terminal, [...words, '--dev'])
  return { code, text: lines.join('\n') }
}

const folder = (name: string) => join(scratch, name)
const allFiles = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** The server on a restored folder. */
async function startOn(dataDir: string) {
  const port = await freePort()
  const app = await startApp(testConfig({ dataDir, port, publicUrl: pds.url }, { development: true }))
  return { url: `http://localhost:${port}`, ctx: app.ctx, [Symbol.asyncDispose]: () => app.stop() }
}

test('a restored server holds what was there, and relays that were ahead follow on', async () => {
  const before = await post('in the backup')
  await pds.plant('name_claim', { handle: 'under-way.test', did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', held_until: 0 })
  expect(await holdfast(pds.dataDir, ['backup', folder('plain')])).toMatchObject({ code: 0 })
  const after = await post('lost with the disk')
  const relay = new Subscriber(pds.url, '?cursor=0')
  const seen = await relay.untilSeen((messages) => messages.some((message) => message.body['rev'] === after.commit.rev))
  const cursor = Math.max(...seen.map((message) => Number(message.body['seq'])))
  relay.close()

  const restored = folder('restored')
  const report = await holdfast(restored, ['restore', folder('plain')])
  expect(report).toMatchObject({ code: 0, text: expect.stringContaining('1 repositories and 1 blobs verified') })
  // Of what was under way then, nobody knows what has become: it is not taken up again.
  using database = new Database(join(restored, 'holdfast.db'), { readonly: true })
  expect(database.query('SELECT * FROM name_claim').all()).toEqual([])
  await using server = await startOn(restored)
  const read = (uri: string) => {
    const [repo, collection, rkey] = uri.slice('at://'.length).split('/')
    return request(`${server.url}/xrpc/com.atproto.repo.getRecord?repo=${repo}&collection=${collection}&rkey=${rkey}`)
  }
  expect(await read(before.uri)).toMatchObject({ status: 200, body: { cid: before.cid } })
  expect((await read(after.uri)).status).not.toBe(200)
  expect(await request(`${server.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${blobCid}`)).toMatchObject({
    status: 200,
    body: 'the bytes of a blob',
  })

  const follower = new Subscriber(server.url, `?cursor=${cursor}`)
  const told = await follower.untilSeen((messages) => messages.some((message) => message.type === '#sync'))
  follower.close()
  expect(told.map((message) => message.type)).toEqual(['#identity', '#account', '#sync'])
  expect(told.every((message) => Number(message.body['seq']) > cursor)).toBe(true)
  expect(String(told[2]!.body['rev']) > after.commit.rev).toBe(true)

  const again = await logIn({ url: server.url }, alice, PASSWORD)
  expect(
    await again.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'org.example.note', record: { text: 'on' } },
    }),
  ).toMatchObject({ status: 200 })
})

test('a backup has a blob whose file was fetched from the mirror while it was being made', async () => {
  await using bucket = await startBucket()
  await using other = await startPdsOnFile({})
  const ann = await createAccount(other, 'ann')
  const cids: string[] = []
  for (const body of ['one', 'two']) {
    const sent = { method: 'POST', body, headers: { 'content-type': 'text/plain' } } as const
    cids.push((await ann.call('com.atproto.repo.uploadBlob', sent)).body.blob.ref.$link)
  }
  const [first = '', second = ''] = cids.toSorted()
  const file = join(other.dataDir, 'blobs', first.slice(-2), first)
  renameSync(file, `${file}.away`)
  bucket.intercept = (_, __, key) => {
    if (key.endsWith(second) && existsSync(`${file}.away`)) renameSync(`${file}.away`, file)
    return false
  }
  const { code, text } = await holdfast(other.dataDir, ['backup', `s3://${bucket.mirror.bucket}/late`, '--json'], {
    SERVICE_PUBLIC_URL: other.url,
    SERVICE_BLOB_MIRROR_ENDPOINT: bucket.mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: bucket.mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: bucket.mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  })
  expect({ code, made: JSON.parse(text) }).toMatchObject({ code: 0, made: { missingBlobs: 0, blobsCopied: 2 } })
})

test('scripts read what was backed up, restored and verified as JSON, which nothing else is mixed with', async () => {
  const place = folder('for-scripts')
  const run = (dataDir: string, ...words: string[]) => {
    const env = { ...process.env, SERVICE_DATA_DIR: dataDir, SERVICE_PUBLIC_URL: pds.url, SERVICE_PORT: '1' }
    const { exitCode, stdout } = Bun.spawnSync([...PROGRAM, ...words, '--json', '--dev'], {
      env: { ...env, SERVICE_LOG_LEVEL: 'debug' },
    })
    return { exitCode, value: JSON.parse(stdout.toString()) as Record<string, unknown> }
  }
  const made = run(pds.dataDir, 'backup', place)
  expect(made).toMatchObject({ exitCode: 0, value: { missingBlobs: 0, hasBlobs: true, snapshotsDropped: 0 } })
  const restored = folder('restored-by-script')
  expect(run(restored, 'restore', place)).toMatchObject({
    exitCode: 0,
    value: { snapshot: made.value['snapshot'], repos: 1, missingBlobs: [], seq: expect.any(Number) },
  })
  expect(run(restored, 'verify')).toMatchObject({ exitCode: 0, value: { repos: 1, faults: 0, remedies: [] } })
})

test('a server that is told its domain alone makes scheduled backups', async () => {
  const home = folder('of a domain')
  mkdirSync(home)
  const env = {
    SERVICE_PORT: String(await freePort()),
    SERVICE_BIND_ADDRESS: '127.0.0.1',
    SERVICE_CRAWLERS: '',
    SERVICE_PLC_DIRECTORY_URL: 'http://127.0.0.1:1',
    SERVICE_BACKUP_DESTINATION: join(home, 'backups'),
    SERVICE_BACKUP_INTERVAL_SECS: '3600',
  }
  await using server = await startProgram(['serve', '--domain', 'pds.example.com'], env, home)
  const credential = ['--url', server.url, '--token-file', join(home, 'data', 'holdfast.admin-token')]
  expect(await runProgram(['sweep', 'backup', ...credential])).toMatchObject({ code: 0, err: '' })
  expect(readdirSync(join(home, 'backups', 'snapshots'))).toHaveLength(1)
})

test('keys of either curve come back, and sign on', async () => {
  await using origin = await startPdsOnFile({})
  const accounts = [
    await createAccount(origin, 'native'),
    await moveIn(origin, await stranger(origin, 'k256'), 'moved'),
  ]
  const write = (account: TestAccount) =>
    account.call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: 'org.example.note', record: { text: 'signed' } },
    })
  for (const account of accounts) expect(await write(account)).toMatchObject({ status: 200 })
  const expected = await stranger(origin, 'k256')
  const promised = await reserveKey(origin.ctx, expected.did, 'k256')
  expect(await holdfast(origin.dataDir, ['backup', folder('curves')])).toMatchObject({ code: 0 })

  const restored = folder('curves restored')
  expect(await holdfast(restored, ['restore', folder('curves')])).toMatchObject({
    code: 0,
    text: expect.stringContaining('2 repositories'),
  })
  {
    await using server = await startOn(restored)
    for (const account of accounts) {
      const again = await logIn(server, account, PASSWORD)
      expect(await write(again)).toMatchObject({ status: 200 })
      const { body } = await again.call(`com.atproto.server.getServiceAuth?aud=${READER_DID}&lxm=${READER_METHOD}`)
      expect(await new TokenReader(server.url).read(body.token)).toBe(account.did)
    }
    expect(await findReservedKey(server.ctx.db, expected.did)).toEqual(promised)
  }
  expect(await holdfast(restored, ['verify'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('2 repositories'),
  })
})

test('a number of a push key that was given after the backup is not given again', async () => {
  const config = { notifications: { relay: 'ab'.repeat(32) }, signingKeyMasterKey: MASTER_KEY }
  await using source = await startPdsOnFile(config)
  const path = '/v1/admin/notifications/sender-keys'
  const rotate = async (url: string) =>
    (await request(`${url}${path}/rotate`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })).body.keys[0] as {
      kid: number
    }
  const published = async (url: string) => (await request(url + path, { headers: bearer(ADMIN_TOKEN) })).body.keys
  await rotate(source.url)
  const before = await published(source.url)
  const env = { SERVICE_SIGNING_KEY_MASTER_KEY: Buffer.from(MASTER_KEY.reveal()).toString('hex') }
  expect(await holdfast(source.dataDir, ['backup', folder('push-keys')], env)).toMatchObject({ code: 0 })
  await rotate(source.url)
  const { kid } = await rotate(source.url)

  const restored = folder('push-keys-restored')
  expect(await holdfast(restored, ['restore', folder('push-keys')], env)).toMatchObject({ code: 0 })
  const port = await freePort()
  const app = await startApp(
    testConfig({ dataDir: restored, port, publicUrl: pds.url }, { ...config, adminToken: new Secret(ADMIN_TOKEN) }),
  )
  const url = `http://localhost:${port}`
  expect(await published(url)).toEqual(before)
  expect((await rotate(url)).kid).toBeGreaterThan(kid)
  await app.stop()
})

test('a blob is kept once, and old backups go', async () => {
  const place = folder('kept')
  const once = await holdfast(pds.dataDir, ['backup', place])
  expect(once.text).toContain('1 blobs copied, 0 already there')
  const twice = await holdfast(pds.dataDir, ['backup', place, '--keep', '1'])
  expect(twice.text).toContain('0 blobs copied, 1 already there')
  expect(twice.text).toContain('1 old backups deleted')
  expect(
    readdirSync(join(place, 'snapshots'), { recursive: true }).filter((name) => String(name).endsWith('manifest.json')),
  ).toHaveLength(1)
})

test('backups of another server at the same destination stay, and are not restored in place of its own', async () => {
  const place = folder('of two servers')
  const other = { SERVICE_PUBLIC_URL: 'http://localhost:1' }
  await holdfast(pds.dataDir, ['backup', place])
  const [own] = readdirSync(join(place, 'snapshots'))
  await using another = await startPdsOnFile({})
  for (const dropped of [0, 1])
    expect((await holdfast(another.dataDir, ['backup', place, '--keep', '1'], other)).text).toContain(
      `${dropped} old backups deleted`,
    )
  const restored = await holdfast(folder('own of two'), ['restore', place])
  expect(restored.text).toStartWith(`${own}: 1 repositories and 1 blobs verified`)
  const doctor = await holdfast(pds.dataDir, ['doctor'], { SERVICE_BACKUP_DESTINATION: place })
  expect(doctor.text).toContain('the newest backup is less than an hour old')
  const third = { SERVICE_BACKUP_DESTINATION: place, SERVICE_PUBLIC_URL: 'http://localhost:2' }
  expect((await holdfast(pds.dataDir, ['doctor'], third)).text).toContain(
    `there is no backup of this server in ${place} yet`,
  )
})

test('a backup that was named while the clock was wrong does not outlive the one that is made', async () => {
  const place = folder('clock')
  await holdfast(pds.dataDir, ['backup', place])
  const [made] = readdirSync(join(place, 'snapshots'))
  renameSync(join(place, 'snapshots', made!), join(place, 'snapshots', '29991231T000000Z'))
  expect(await holdfast(pds.dataDir, ['backup', place, '--keep', '1'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('1 old backups deleted'),
  })
  expect(allFiles(join(place, 'snapshots')).filter((file) => file.includes('29991231'))).toEqual([])
  expect(await holdfast(folder('after the clock'), ['restore', place])).toMatchObject({ code: 0 })
})

test('backups of a clock that was ahead go before those that it was not', async () => {
  const place = folder('ahead')
  await holdfast(pds.dataDir, ['backup', place])
  const snapshots = join(place, 'snapshots')
  const [made] = readdirSync(snapshots)
  renameSync(join(snapshots, made!), join(snapshots, '20200101T000000Z'))
  for (const ahead of ['29991231T000000Z', '29991230T000000Z'])
    cpSync(join(snapshots, '20200101T000000Z'), join(snapshots, ahead), { recursive: true })
  expect(await holdfast(pds.dataDir, ['backup', place, '--keep', '2'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('2 old backups deleted'),
  })
  const left = readdirSync(snapshots)
    .filter((name) => existsSync(join(snapshots, name, 'manifest.json')))
    .toSorted()
  expect(left).toEqual(['20200101T000000Z', expect.stringMatching(/^20[^0]/)])
})

test('a restore takes the backup with the newest events, although another one was named by a clock that was ahead', async () => {
  const place = folder('named ahead')
  await holdfast(pds.dataDir, ['backup', place])
  const [older] = readdirSync(join(place, 'snapshots'))
  renameSync(join(place, 'snapshots', older!), join(place, 'snapshots', '29991231T000000Z'))
  const { uri } = await post('after the clock was set right')
  await holdfast(pds.dataDir, ['backup', place])
  const newer = readdirSync(join(place, 'snapshots')).find((name) => !name.startsWith('2999'))!

  const restored = folder('from the newest events')
  expect(await holdfast(restored, ['restore', place])).toMatchObject({ code: 0, text: expect.stringContaining(newer) })
  using database = new Database(join(restored, 'holdfast.db'), { readonly: true })
  expect(database.query('SELECT path FROM record WHERE path = ?').all(uri.split('/').slice(-2).join('/'))).toHaveLength(
    1,
  )
})

test('a backup that fails leaves nothing behind that takes room', async () => {
  const place = folder('failing')
  mkdirSync(place)
  writeFileSync(join(place, 'blobs'), 'where a folder should be')
  const abandoned = join(pds.dataDir, '.backup-of-a-killed-process.db')
  const others = join(pds.dataDir, '.backup-of-another-process.db')
  for (const path of [abandoned, others]) writeFileSync(path, 'a copy of the database')
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400
  utimesSync(abandoned, twoDaysAgo, twoDaysAgo)
  expect((await holdfast(pds.dataDir, ['backup', place])).code).not.toBe(0)
  expect(allFiles(place).sort()).toEqual([join(place, 'archive.json'), join(place, 'blobs')])
  expect(readdirSync(pds.dataDir).filter((name) => name.startsWith('.backup-'))).toEqual([
    '.backup-of-another-process.db',
  ])
  rmSync(others)
})

test('a backup leaves the server some room on its disk, or is refused', async () => {
  const [from, to, disk] = [folder('of the small disk'), folder('without room'), folder('small disk')]
  expect((await holdfast(pds.dataDir, ['backup', from])).code).toBe(0)
  const script = `"$@" restore "$FROM" --dev && head -c 20000000 /dev/zero > "$DISK/other" && exec "$@" backup "$TO" --dev`
  const program = Bun.spawn([...withSmallDisk(disk, 140 * 1024 ** 2), 'sh', '-c', script, 'sh', ...PROGRAM], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: scratch,
      FROM: from,
      TO: to,
      DISK: disk,
      SERVICE_DATA_DIR: disk,
      SERVICE_PUBLIC_URL: pds.url,
      SERVICE_PORT: '1',
      SERVICE_LOG_LEVEL: 'error',
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  expect([await new Response(program.stderr).text(), await program.exited]).toEqual([
    expect.stringContaining('has no room for a copy of the database'),
    1,
  ])
  expect(allFiles(to).filter((path) => path.includes('snapshots'))).toEqual([])
})

test('what killed backups have written of blobs in part is deleted by the next one', async () => {
  const place = folder('with parts')
  expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
  const blob = allFiles(join(place, 'blobs'))[0]!
  const left = `${blob}.${crypto.randomUUID()}.part`
  writeFileSync(left, 'the first bytes')
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400
  utimesSync(left, twoDaysAgo, twoDaysAgo)
  // A backup is named after the second in which it began.
  await until(async () => (await holdfast(pds.dataDir, ['backup', place, '--keep', '9'])).code === 0)
  expect(existsSync(left)).toBe(false)
  expect(existsSync(blob)).toBe(true)
})

test('backups that begin at the same time do not mix', async () => {
  const place = folder('at once')
  // The destination exists already.
  expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
  const made = await Promise.all([0, 1, 2].map(() => holdfast(pds.dataDir, ['backup', place])))
  expect(made.map(({ code }) => code)).toEqual([0, 0, 0])
  const names = readdirSync(join(place, 'snapshots')).filter((name) =>
    existsSync(join(place, 'snapshots', name, 'manifest.json')),
  )
  expect(names).toHaveLength(4)
  expect(allFiles(place).filter((file) => file.includes('begun'))).toEqual([])
  for (const name of names)
    expect(await holdfast(folder(`one of them ${name}`), ['restore', place, name])).toMatchObject({ code: 0 })
})

test('blobs that a backup in progress may count on stay, and what a killed one has left goes after a week', async () => {
  const place = folder('in progress')
  await holdfast(pds.dataDir, ['backup', place])
  const snapshots = join(place, 'snapshots')
  const nameOf = (daysAgo: number) =>
    new Date(Date.now() - daysAgo * 86_400_000).toISOString().replace(/[-:]|\.\d+/g, '')
  const [underWay, killed] = [nameOf(1), nameOf(8)]
  for (const name of [underWay, killed]) {
    mkdirSync(join(snapshots, name))
    for (const part of ['begun-1', 'database.part']) writeFileSync(join(snapshots, name, part), 'so far')
  }
  const [shard] = readdirSync(join(place, 'blobs'))
  const blob = join(place, 'blobs', shard!, `bafkreibackupinprogress${shard}`)
  writeFileSync(blob, 'a blob that only the backup in progress lists')
  const backup = () => holdfast(pds.dataDir, ['backup', place, '--keep', '1'])
  expect((await backup()).text).toContain('1 old backups deleted')
  expect(readdirSync(snapshots)).toContain(underWay)
  expect(existsSync(join(snapshots, killed))).toBe(false)
  expect(existsSync(blob)).toBe(true)

  rmSync(join(snapshots, underWay), { recursive: true })
  expect((await backup()).text).toContain('1 old backups deleted')
  expect(existsSync(blob)).toBe(false)
  expect(allFiles(snapshots).filter((file) => file.endsWith('manifest.json'))).toHaveLength(1)
})

test('blobs that a backup may count on stay that begins on another machine while old ones are deleted', async () => {
  await using bucket = await startBucket()
  const env = {
    SERVICE_BLOB_MIRROR_ENDPOINT: bucket.mirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: bucket.mirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: bucket.mirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  }
  const backup = () => holdfast(pds.dataDir, ['backup', `s3://${bucket.mirror.bucket}/two`, '--keep', '1'], env)
  expect((await backup()).code).toBe(0)
  const blob = 'two/blobs/er/bafkreibackupofanother'
  await bucket.write(blob, Buffer.from('a blob that only the other backup lists'))
  const begun = `two/snapshots/${new Date(Date.now() + 60_000).toISOString().replace(/[-:]|\.\d+/g, '')}/begun-1`
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'DELETE' || !key.endsWith('manifest.json')) return false
    bucket.intercept = null
    void bucket.write(begun, Buffer.from('now')).then(() => bucket.pass(incoming, response))
    return true
  }
  expect((await backup()).text).toContain('1 old backups deleted')
  expect(bucket.keys()).toContain(blob)

  bucket.delete(begun)
  expect((await backup()).text).toContain('1 old backups deleted')
  expect(bucket.keys()).not.toContain(blob)
})

test('what is written into a folder and breaks off leaves no part', async () => {
  const archive = openArchive(folder('parts'), pds.ctx.config)
  const breaking = async function* () {
    yield Buffer.from('so far')
    throw new Error('no space left on device')
  }
  expect(await thrownBy(archive.write('blobs/aa/x', breaking()))).toThrow('no space left')
  expect(allFiles(folder('parts'))).toEqual([])
})

/** Deriving a key takes a second of the processor unless an archive is founded with less work. */
const sealedBackups = { SERVICE_BACKUP_PASSPHRASE: PASSPHRASE, SERVICE_BACKUP_WORK_FACTOR: '10' }
const workFactorOf = (place: string) =>
  /\n-> scrypt \S+ (\d+)\n/.exec(readFileSync(join(place, 'identity.age'), 'latin1'))?.[1]

test('with a passphrase nothing is readable, and nothing comes back without it', async () => {
  const place = folder('sealed')
  const passphrase = sealedBackups
  expect(await holdfast(pds.dataDir, ['backup', place], passphrase)).toMatchObject({ code: 0 })
  expect(workFactorOf(place)).toBe('10')
  for (const path of allFiles(place)) {
    const bytes = readFileSync(path)
    expect(bytes.includes('SQLite format')).toBe(false)
    expect(bytes.includes('the bytes of a blob')).toBe(false)
    expect(bytes.includes(readFileSync(join(pds.dataDir, 'master.key')).subarray(0, 32))).toBe(false)
  }
  expect(await holdfast(folder('no-1'), ['restore', place])).toMatchObject({
    code: 1,
    text: expect.stringContaining('passphrase'),
  })
  expect(await holdfast(folder('no-2'), ['restore', place], { SERVICE_BACKUP_PASSPHRASE: 'another' })).toMatchObject({
    code: 1,
    text: expect.stringContaining('does not decrypt'),
  })
  expect(await holdfast(folder('yes'), ['restore', place], passphrase)).toMatchObject({ code: 0 })
})

test('a passphrase that does not open the backups of the destination is told before a restore needs it', async () => {
  const place = folder('another passphrase')
  const another = { ...sealedBackups, SERVICE_BACKUP_PASSPHRASE: 'another', SERVICE_BACKUP_DESTINATION: place }
  expect(await holdfast(pds.dataDir, ['backup', place], sealedBackups)).toMatchObject({ code: 0 })
  const before = readdirSync(place, { recursive: true }).toSorted()
  expect(await holdfast(pds.dataDir, ['backup'], another)).toMatchObject({
    code: 1,
    text: expect.stringContaining('the passphrase does not decrypt these backups'),
  })
  expect(readdirSync(place, { recursive: true }).toSorted()).toEqual(before)
  expect((await holdfast(pds.dataDir, ['doctor'], another)).text).toContain(
    'the passphrase does not decrypt these backups',
  )
})

test('no backup is encrypted to a key that the passphrase does not open, whoever has put it there', async () => {
  const place = folder('key of another')
  const env = { ...sealedBackups, SERVICE_BACKUP_DESTINATION: place }
  expect(await holdfast(pds.dataDir, ['backup', place], env)).toMatchObject({ code: 0 })
  const path = join(place, 'archive.json')
  const recipient = await identityToRecipient(await generateX25519Identity())
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), recipient }))
  const before = readdirSync(place, { recursive: true }).toSorted()
  const told = 'archive.json names another key for backups than the one that the passphrase decrypts'
  expect(await holdfast(pds.dataDir, ['backup'], env)).toMatchObject({ code: 1, text: expect.stringContaining(told) })
  expect(readdirSync(place, { recursive: true }).toSorted()).toEqual(before)
  expect((await holdfast(pds.dataDir, ['doctor'], env)).text).toContain(told)
})

test('first backups with a passphrase at the same time can all be decrypted', async () => {
  const place = folder('sealed at once')
  const passphrase = sealedBackups
  const made = await Promise.all([0, 1, 2].map(() => holdfast(pds.dataDir, ['backup', place], passphrase)))
  expect(made.map(({ code }) => code)).toEqual([0, 0, 0])
  expect(readdirSync(place).toSorted()).toEqual(['archive.json', 'blobs', 'identity.age', 'snapshots'])
  const names = readdirSync(join(place, 'snapshots'))
  expect(names).toHaveLength(3)
  for (const name of names)
    expect(await holdfast(folder(`sealed ${name}`), ['restore', place, name], passphrase)).toMatchObject({ code: 0 })
})

test('a first backup that was killed does not keep the next one from the destination', async () => {
  const place = folder('killed at first')
  mkdirSync(place)
  for (const agoMillis of [86_400_000, -86_400_000])
    writeFileSync(join(place, `founding-${Date.now() - agoMillis}-of-a-killed-process`), '')
  writeFileSync(join(place, 'identity.age'), 'of a killed process')
  const passphrase = { SERVICE_BACKUP_PASSPHRASE: PASSPHRASE }
  expect(await holdfast(pds.dataDir, ['backup', place], passphrase)).toMatchObject({ code: 0 })
  expect(readdirSync(place).filter((name) => name.startsWith('founding'))).toEqual([])
  expect(workFactorOf(place)).toBe('18')
  expect(await holdfast(folder('after a killed one'), ['restore', place], passphrase)).toMatchObject({ code: 0 })
})

test('a database whose log could not be copied into it is not restored', async () => {
  const [place, target] = [folder('of a reader'), folder('with a reader')]
  expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
  const restoring = join(target, 'holdfast.db.restoring')
  const restored = holdfast(target, ['restore', place])
  {
    await until(() => existsSync(`${restoring}-wal`), { maxPauseMillis: 0 })
    using reader = new Database(restoring, { readonly: true })
    reader.run('BEGIN')
    reader.query('SELECT count(*) FROM account').get()
    expect(await restored).toEqual({
      code: 1,
      text: expect.stringContaining(`${restoring}-wal could not be copied into the database: make room on the disk`),
    })
  }
  expect(existsSync(join(target, 'holdfast.db'))).toBe(false)
  expect(await holdfast(target, ['restore', place])).toMatchObject({ code: 0 })
  expect(await holdfast(target, ['verify'])).toMatchObject({ code: 0 })
})

test('a damaged backup is not restored', async () => {
  const place = folder('damaged')
  await holdfast(pds.dataDir, ['backup', place])
  const [blob] = allFiles(join(place, 'blobs'))
  writeFileSync(blob!, 'other bytes')
  const restored = await holdfast(folder('from-damaged'), ['restore', place])
  expect(restored.text).toContain(`blob ${blobCid} is not in the backup`)
  expect(restored.text).toContain('1 repositories and 0 blobs verified, 1 blobs missing, ')

  const [database] = allFiles(join(place, 'snapshots')).filter((path) => path.endsWith('database'))
  const bytes = readFileSync(database!)
  bytes[bytes.length - 100]! ^= 1
  writeFileSync(database!, bytes)
  const target = folder('from-broken')
  expect(await holdfast(target, ['restore', place])).toMatchObject({
    code: 1,
    text: expect.stringContaining('damaged'),
  })
  expect(readdirSync(target)).not.toContain('holdfast.db')
})

describe('of a backup that was copied in part', () => {
  const cutTo = (bytes: number) => (path: string) => truncateSync(path, bytes)
  const snapshotOf = (place: string) => join(place, 'snapshots', readdirSync(join(place, 'snapshots'))[0]!)
  const parts: Record<
    string,
    { env?: Record<string, string>; path(place: string): string; spoil(path: string): void }
  > = {
    'the file that says what it is': { path: (place) => join(place, 'archive.json'), spoil: cutTo(10) },
    'its manifest': { path: (place) => join(snapshotOf(place), 'manifest.json'), spoil: cutTo(40) },
    'all of its manifest': { path: (place) => join(snapshotOf(place), 'manifest.json'), spoil: cutTo(0) },
    'its encrypted database': {
      env: sealedBackups,
      path: (place) => join(snapshotOf(place), 'database.age'),
      spoil: cutTo(400_000),
    },
    'its encrypted master key': {
      env: sealedBackups,
      path: (place) => join(snapshotOf(place), 'master-key.age'),
      spoil: cutTo(0),
    },
    'its encrypted list of blobs': {
      env: sealedBackups,
      path: (place) => join(snapshotOf(place), 'blobs.age'),
      spoil: cutTo(5),
    },
  }
  for (const [what, { env = {}, path, spoil }] of Object.entries(parts))
    test(`${what} is named, and nothing is restored`, async () => {
      const place = folder(`cut ${what}`)
      expect(await holdfast(pds.dataDir, ['backup', place], env)).toMatchObject({ code: 0 })
      const part = path(place)
      spoil(part)
      const target = folder(`from cut ${what}`)
      const { code, text } = await holdfast(target, ['restore', place], env)
      expect({ code, text }).toEqual({
        code: 1,
        text: `holdfast restore: the backup is damaged: ${relative(place, part)} was cut off or changed. Copy the backup again, or restore another one`,
      })
      expect(existsSync(join(target, 'holdfast.db'))).toBe(false)
    })

  test('the list of blobs is missed', async () => {
    const place = folder('without the list of blobs')
    expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
    rmSync(join(snapshotOf(place), 'blobs'))
    expect(await holdfast(folder('from no list'), ['restore', place])).toEqual({
      code: 1,
      text: 'holdfast restore: the backup lacks its list of blobs: copy it again',
    })
  })

  test('an encrypted blob is named, and all else is restored', async () => {
    for (const [name, bytes] of Object.entries({ 'some of a blob': 100, 'no byte of a blob': 0 })) {
      const place = folder(name)
      expect(await holdfast(pds.dataDir, ['backup', place], sealedBackups)).toMatchObject({ code: 0 })
      const [blob] = allFiles(join(place, 'blobs'))
      truncateSync(blob!, bytes)
      const restored = await holdfast(folder(`from ${name}`), ['restore', place], sealedBackups)
      expect(restored).toMatchObject({ code: 0, text: expect.stringContaining(`blob ${blobCid} is not in the backup`) })
    }
  })
})

test('a restore never overwrites', async () => {
  expect(await holdfast(pds.dataDir, ['restore', folder('plain')])).toMatchObject({
    code: 1,
    text: expect.stringContaining('needs an empty data directory'),
  })
  expect(await holdfast(folder('nothing'), ['restore', folder('empty')])).toMatchObject({
    code: 1,
    text: expect.stringContaining('no backups'),
  })
})

test('a restore leaves alone what another one has fetched, as long as that one runs', async () => {
  const [place, target] = [folder('restored twice'), folder('from restored twice')]
  expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
  mkdirSync(target)
  const unlock = lockDirectory(target)
  const fetched = join(target, 'holdfast.db.restoring')
  writeFileSync(fetched, 'what the other one has fetched')
  expect(await holdfast(target, ['restore', place])).toEqual({
    code: 1,
    text: `holdfast restore: ${target} is in use by another process: stop that process, or set data_dir to another folder`,
  })
  expect(readFileSync(fetched, 'utf8')).toBe('what the other one has fetched')
  unlock()
  expect(await holdfast(target, ['restore', place])).toMatchObject({ code: 0 })
})

test('a restore that is killed at any moment is repeated by the same command', async () => {
  const [place, dataDir] = [folder('for kills'), folder('after kills')]
  expect(await holdfast(pds.dataDir, ['backup', place])).toMatchObject({ code: 0 })
  const env = { ...process.env, SERVICE_DATA_DIR: dataDir, SERVICE_PUBLIC_URL: pds.url, SERVICE_PORT: '1' }
  let kills = 0
  // The steps grow: on a slow machine, there would otherwise be more tries, each of which takes longer.
  for (let millis = 20; ; millis += Math.max(10, Math.round(millis * 0.03))) {
    const program = Bun.spawn([...PROGRAM, 'restore', place, '--dev'], {
      env,
      stdout: 'ignore',
      stderr: 'pipe',
      timeout: millis,
      killSignal: 'SIGKILL',
    })
    const said = await new Response(program.stderr).text()
    await program.exited
    if (program.signalCode === 'SIGKILL') kills++
    else {
      // It may have been killed after all was done.
      if (program.exitCode !== 0) expect(said).toContain('needs an empty data directory')
      break
    }
  }
  expect(kills).toBeGreaterThan(1)
  expect(await holdfast(dataDir, ['verify'])).toMatchObject({
    code: 0,
    text: '1 repositories and 1 blobs verified, 0 faults',
  })
}, 120_000)

test('a restore is not mixed with what another database has left behind', async () => {
  await holdfast(pds.dataDir, ['backup', folder('unmixed')])
  await using other = await startPdsOnFile({})
  await createAccount(other, 'mallory')
  const restoreBeside = async (left: string, from = left) => {
    const dir = folder(`with ${left}`)
    mkdirSync(dir)
    cpSync(join(other.dataDir, from), join(dir, left))
    const { code, text } = await holdfast(dir, ['restore', folder('unmixed')])
    return { code, text, kept: readFileSync(join(other.dataDir, from)).equals(readFileSync(join(dir, left))) }
  }
  expect(await restoreBeside('holdfast.db-wal')).toEqual({
    code: 1,
    text: expect.stringContaining('holdfast.db-wal exists; a restore needs an empty data directory'),
    kept: true,
  })
  expect(await restoreBeside('master.key')).toEqual({
    code: 1,
    text: expect.stringContaining('master.key holds a different key than the backup'),
    kept: true,
  })

  const again = folder('after a restore that was killed')
  mkdirSync(again)
  writeFileSync(join(again, 'master.key.ad8c2a70-18e7-4cfd-ad1a-615def37e8e0.part'), 'a key')
  cpSync(join(other.dataDir, 'holdfast.db-wal'), join(again, 'holdfast.db.restoring-wal'))
  expect(await holdfast(again, ['restore', folder('unmixed')])).toMatchObject({ code: 0 })
  expect(await holdfast(again, ['verify'])).toMatchObject({
    code: 0,
    text: '1 repositories and 1 blobs verified, 0 faults',
  })
  expect(readdirSync(again).filter((name) => /\.part$|restoring/.test(name))).toEqual([])
})

test('verify names what is wrong', async () => {
  await holdfast(pds.dataDir, ['backup', folder('to-verify')])
  const dir = folder('verified')
  expect(await holdfast(dir, ['restore', folder('to-verify')])).toMatchObject({ code: 0 })
  for (const words of [['verify'], ['verify', '--quick']])
    expect(await holdfast(dir, words)).toMatchObject({ code: 0, text: '1 repositories and 1 blobs verified, 0 faults' })

  const { Database } = await import('bun:sqlite')
  const broken = folder('broken')
  mkdirSync(broken)
  cpSync(dir, broken, { recursive: true })
  const db = new Database(join(broken, 'holdfast.db'))
  db.run(
    `UPDATE record SET value = x'a0' WHERE rowid IN (SELECT rowid FROM record LIMIT 1)`.replace(
      /WHERE.*/,
      'WHERE path = (SELECT min(path) FROM record)',
    ),
  )
  db.close()
  rmSync(join(broken, 'blobs'), { recursive: true })
  const found = await holdfast(broken, ['verify'])
  expect(found.code).toBe(1)
  expect(found.text).toContain('does not match its CID')
  expect(found.text).toMatch(/record \S+ would be unreadable in an archive/)
  expect(found.text).toContain(`the folder ${join(broken, 'blobs')} is missing`)
  expect(found.text).toContain('3 faults')
  expect(found.text).toContain('"holdfast repair"')
  expect(found.text).toContain('restore a backup with "holdfast restore"')
})

test('where nothing is, nothing is found well, and nothing is made', async () => {
  const dir = folder('mistyped')
  for (const words of [['verify'], ['sweep', 'firehose-gc'], ['backup', folder('of nothing')]]) {
    expect(await holdfast(dir, words)).toMatchObject({
      code: 1,
      text: expect.stringContaining('there is no database at'),
    })
  }
  expect(existsSync(dir)).toBe(false)
})

test('a sweep runs in the server that is there, or without one', async () => {
  expect(await holdfast(folder('verified'), ['sweep', 'firehose-gc'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('swept'),
  })
  expect(await holdfast(folder('verified'), ['sweep', 'nothing'])).toMatchObject({
    code: 2,
    text: expect.stringContaining('firehose-gc'),
  })
  const port = new URL(pds.url).port
  expect(await holdfast(pds.dataDir, ['sweep'], { SERVICE_PORT: port })).toMatchObject({
    code: 0,
    text: expect.stringContaining('firehose-gc'),
  })
  expect(await holdfast(pds.dataDir, ['sweep', 'firehose-gc'], { SERVICE_PORT: port })).toMatchObject({
    code: 1,
    text: expect.stringContaining('admin token'),
  })
  const { ADMIN_TOKEN } = await import('../../support/servers/config.ts')
  expect(
    await holdfast(pds.dataDir, ['sweep', 'firehose-gc'], { SERVICE_PORT: port, SERVICE_ADMIN_TOKEN: ADMIN_TOKEN }),
  ).toMatchObject({
    code: 0,
    text: expect.stringContaining('swept'),
  })
  expect(
    await holdfast(pds.dataDir, ['sweep', 'firehose-gc'], { SERVICE_PORT: port, SERVICE_ADMIN_TOKEN: 'wrong' }),
  ).toMatchObject({
    code: 1,
    text: expect.stringContaining('does not accept this admin token'),
  })
  const there = ['sweep', 'firehose-gc', '--url', pds.url, '--reason', 'after the upgrade']
  expect(await holdfast(folder('nowhere'), there, { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })).toMatchObject({
    code: 0,
    text: expect.stringContaining('swept'),
  })
  const { events } = (await request(`${pds.url}/v1/admin/audit?action=sweep_run`, { headers: bearer(ADMIN_TOKEN) }))
    .body
  expect(events[0]).toMatchObject({ subject: 'firehose-gc', reason: 'after the upgrade' })
  expect(
    await holdfast(folder('nowhere'), ['sweep', 'firehose-gc', '--url', 'http://127.0.0.1:1'], {
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    }),
  ).toMatchObject({ code: 1, text: expect.stringContaining('no server is listening') })
})
