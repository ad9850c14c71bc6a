/** The continuous backup of a serving server, and what can be restored from it. */
import { afterAll, expect, test } from 'bun:test'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { startApp, withContext } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { openArchive, sealOf } from '../../../src/features/operations/backup/backup.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import type { TestPds } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'
import { objectsAt } from './kept-notes.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-continuous-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))
const PASSPHRASE = 'a passphrase for backups'

const start = (continuous: string, backup: ConfigOverrides['backup'] = {}, more: ConfigOverrides = {}) =>
  startPdsOnFile({ backup: { continuous, continuousLagMs: 100, ...backup }, ...more })

const stateOf = async (pds: TestPds) => (await request(`${pds.url}/readyz`)).body.continuousBackup
/** Until everything that was acknowledged is at the destination. */
const sent = (pds: TestPds) => until(async () => (await stateOf(pds)).lagMillis === 0)
const now = (pds: TestPds) => new Date(pds.clock.now()).toISOString()

/** Returns the path of the record. */
async function post(account: TestAccount, text: string): Promise<string> {
  const record = { $type: 'org.example.note', text }
  const { status, body } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection: 'org.example.note', record },
  })
  expect(status).toBe(200)
  return pathOf(body.uri)
}

async function restore(from: string, at: string, env: Record<string, string> = {}) {
  const dataDir = newFolder()
  const lines: string[] = []
  const terminal = quietTerminal(
    {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PUBLIC_URL: 'http://localhost:1',
      SERVICE_PORT: '1',
      SERVICE_LOG_LEVEL: 'error',
      ...env,
    },
    lines,
  )
  const code = await runCommand(terminal, ['restore', from, '--at', at, '--dev'])
  if (code === 0) expect(readdirSync(dataDir).filter((name) => name.includes('restoring'))).toEqual([])
  return { code, text: lines.join('\n'), dataDir }
}

/** The server on a restored folder. */
async function startOn(dataDir: string) {
  const port = await freePort()
  const app = await startApp(testConfig({ dataDir, port, publicUrl: 'http://localhost:1' }, { development: true }))
  return { url: `http://localhost:${port}`, [Symbol.asyncDispose]: () => app.stop() }
}

/** What a restored server has of the records that `post` made. */
async function paths(dataDir: string): Promise<string[]> {
  await using server = await startOn(dataDir)
  const { body } = await request(`${server.url}/xrpc/com.atproto.sync.listRepos`)
  const [{ did }] = body.repos
  const found: string[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const query = new URLSearchParams({ repo: did, collection: 'org.example.note', ...(cursor && { cursor }) })
    const page = (await request(`${server.url}/xrpc/com.atproto.repo.listRecords?${query}`)).body
    found.push(...page.records.map(({ uri }: { uri: string }) => pathOf(uri)))
    cursor = page.cursor
  }
  return found.toSorted()
}
const pathOf = (uri: string) => uri.split('/').slice(-2).join('/')
const contentsOf = (dataDir: string) =>
  objectsAt(join(dataDir, 'blobs'))
    .map((path) => readFileSync(path, 'utf8'))
    .toSorted()
const segments = (folder: string) => objectsAt(folder).filter((path) => path.includes('/segment-'))

test('a restore returns to any instant, and the event log continues above all that was sent since', async () => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await createAccount(pds, 'alice')
  const first = await post(alice, 'first')
  await sent(pds)
  const between = now(pds)
  pds.clock.advance({ secs: 60 })
  const second = await post(alice, 'second')
  await sent(pds)
  const relay = new Subscriber(pds.url, '?cursor=0')
  const seen = await relay.untilSeen((messages) =>
    messages.some(({ body }) => JSON.stringify(body).includes(second.split('/').at(-1)!)),
  )
  relay.close()
  const highest = Math.max(...seen.map(({ body }) => Number(body['seq'])))

  const earlier = await restore(place, between)
  expect(earlier).toMatchObject({ code: 0, text: expect.stringContaining('1 repositories and 0 blobs verified') })
  expect(await paths(earlier.dataDir)).toEqual([first])
  {
    await using server = await startOn(earlier.dataDir)
    const follower = new Subscriber(server.url, `?cursor=${highest}`)
    const told = await follower.untilSeen((messages) => messages.some(({ type }) => type === '#sync'))
    follower.close()
    expect(told.map(({ type }) => type)).toEqual(['#identity', '#account', '#sync'])
    expect(told.every(({ body }) => Number(body['seq']) > highest)).toBe(true)
  }
  const config = testConfig({ dataDir: earlier.dataDir, port: 1, publicUrl: 'http://localhost:1' })
  expect(await withContext(config, (ctx) => faultsOfRepo(ctx, alice.did as Did))).toEqual([])

  const latest = await restore(place, now(pds), { SERVICE_BACKUP_CONTINUOUS: place })
  expect(latest.code).toBe(0)
  expect(await paths(latest.dataDir)).toEqual([first, second].toSorted())
  expect(await restore(place, '2001-01-01T00:00:00Z')).toMatchObject({
    code: 1,
    text: expect.stringContaining('the continuous backup reaches back only to'),
  })
  expect((await restore(place, 'yesterday')).code).toBe(2)
})

test('everything at the destination is sealed, and only the passphrase opens it', async () => {
  const place = newFolder()
  await using pds = await start(place, { passphrase: new Secret(PASSPHRASE), workFactor: 10 })
  const alice = await createAccount(pds, 'alice')
  const uri = await post(alice, 'nothing of this is in clear')
  await sent(pds)
  for (const path of objectsAt(place)) expect(readFileSync(path).includes('nothing of this')).toBe(false)
  expect(
    readFileSync(
      objectsAt(place).find((path) => path.endsWith('/key.age'))!,
      'latin1',
    ),
  ).toStartWith('age-encryption.org')
  expect(await restore(place, now(pds))).toMatchObject({ code: 1, text: expect.stringContaining('encrypted') })
  expect((await restore(place, now(pds), { SERVICE_BACKUP_PASSPHRASE: 'another passphrase' })).code).toBe(1)
  const restored = await restore(place, now(pds), { SERVICE_BACKUP_PASSPHRASE: PASSPHRASE })
  expect(restored.code).toBe(0)
  expect(await paths(restored.dataDir)).toEqual([uri])
})

test('a part that is missing, damaged, misplaced or of another chain is named, and nothing is restored', async () => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await createAccount(pds, 'alice')
  const instants: string[] = []
  for (let i = 0; i < 4; i++) {
    await post(alice, `note ${i}`)
    await sent(pds)
    instants.push(now(pds))
    pds.clock.advance({ secs: 1 })
  }
  const other = newFolder()
  await using another = await start(other)
  await createAccount(another, 'alice')
  await sent(another)

  const [last, beforeLast, earlier] = segments(place).toReversed() as [string, string, string]
  const piece = objectsAt(place).find((path) => path.includes('/piece-'))!
  const base = objectsAt(place).find((path) => path.includes('/base-'))!
  const key = objectsAt(place).find((path) => path.endsWith('/key'))!
  const damage: [string, () => void, RegExp][] = [
    ['torn', () => truncateSync(last, 1000), /segment-\d+ is damaged/],
    ['cut to nothing', () => truncateSync(last, 0), /segment-\d+ is damaged/],
    ['missing', () => rmSync(beforeLast), /segment-\d+ is missing/],
    ['changed', () => appendFileSync(last, 'x'), /segment-\d+ is damaged/],
    ['older in its place', () => cpSync(earlier, last), /segment-\d+ has the content of another object/],
    ['of another chain', () => cpSync(segments(other)[0]!, last), /segment-\d+ is damaged/],
    ['piece torn', () => truncateSync(piece, 100), /piece-\d+-\d+ is damaged/],
    ['piece missing', () => rmSync(piece), /piece-\d+-\d+ is missing/],
    [
      'base under another instant',
      () => renameSync(base, base.replace(/\d+$/, '1')),
      /base-\d+-1 has the content of another/,
    ],
    ['key missing', () => rmSync(key), /key is missing/],
    [
      'key of another chain',
      () =>
        cpSync(
          objectsAt(other).find((path) => path.endsWith('/key'))!,
          key,
        ),
      /base-[\d-]+ is damaged/,
    ],
  ]
  const whole = newFolder()
  await pds.stop()
  cpSync(place, whole, { recursive: true })
  for (const [name, act, said] of damage) {
    rmSync(place, { recursive: true })
    cpSync(whole, place, { recursive: true })
    act()
    const { code, text, dataDir } = await restore(place, instants[3]!)
    expect({ name, code, text }).toEqual({ name, code: 1, text: expect.stringMatching(said) })
    expect(objectsAt(dataDir).filter((path) => path.endsWith('holdfast.db'))).toEqual([])
  }
  // What does not need the damaged part can be restored: the message says until when.
  rmSync(place, { recursive: true })
  cpSync(whole, place, { recursive: true })
  truncateSync(last, 1000)
  const { text } = await restore(place, instants[3]!)
  const { code, dataDir } = await restore(place, /--at (\S+)/.exec(text)![1]!)
  expect(code).toBe(0)
  expect(await paths(dataDir)).toHaveLength(3)
})

test('a passphrase that was changed since the chain began is told before a restore needs it', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousLagMs: 100, workFactor: 10 }
  await using pds = await startPdsOnFile({ backup: { ...backup, passphrase: new Secret(PASSPHRASE) } })
  await createAccount(pds, 'alice')
  await sent(pds)
  const examined = async (passphrase: string) => {
    const lines: string[] = []
    const env = {
      SERVICE_DATA_DIR: pds.dataDir,
      SERVICE_PUBLIC_URL: pds.url,
      SERVICE_BACKUP_CONTINUOUS: place,
      SERVICE_BACKUP_PASSPHRASE: passphrase,
    }
    await runCommand(quietTerminal(env, lines), ['doctor', '--dev'])
    return lines.find((line) => line.includes(' continuous '))
  }
  expect(await examined(PASSPHRASE)).toMatch(/^ok .* decrypts the continuous backup$/)
  // The chain goes on without it.
  await pds.restart({ backup: { ...backup, passphrase: new Secret('another passphrase') } })
  await createAccount(pds, 'bob')
  await sent(pds)
  expect(await examined('another passphrase')).toMatch(/^FAULT .*the passphrase does not decrypt these backups/)
})

test('nothing is encrypted to a key that the passphrase does not open, whoever has put it there', async () => {
  const place = newFolder()
  const config = testConfig({ dataDir: scratch, port: 1, publicUrl: 'http://localhost:1' })
  const archive = openArchive(place, config)
  await sealOf(archive, { passphrase: new Secret(PASSPHRASE), workFactor: 10 }, new Date())
  const path = join(place, 'archive.json')
  const founded = JSON.parse(readFileSync(path, 'utf8'))
  const recipient = await identityToRecipient(await generateX25519Identity())
  writeFileSync(path, JSON.stringify({ ...founded, recipient }))
  await using pds = await start(place, { passphrase: new Secret(PASSPHRASE), workFactor: 10 })
  await createAccount(pds, 'alice')
  await until(() => pds.log.some((line) => JSON.stringify(line).includes('names another key for backups')))
  expect(objectsAt(place).filter((name) => /chain|key|base|segment/.test(name.slice(place.length)))).toEqual([])

  writeFileSync(path, JSON.stringify(founded))
  await sent(pds)
})

test('blobs come from backups at another destination, if they are whole there; those that are missing are named', async () => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await Uploader.join(pds, 'alice')
  const blobs = [await alice.upload('a blob'), await alice.upload('another blob')]
  for (const [i, blob] of blobs.entries()) await alice.refer(`com.example.note/${i}`, blob)
  await sent(pds)
  const backups = newFolder()
  const env = { SERVICE_BACKUP_PASSPHRASE: PASSPHRASE, SERVICE_BACKUP_WORK_FACTOR: '10' }
  const given = { SERVICE_DATA_DIR: pds.dataDir, SERVICE_PUBLIC_URL: pds.url, SERVICE_LOG_LEVEL: 'error', ...env }
  expect(await runCommand(quietTerminal(given, []), ['backup', backups, '--dev'])).toBe(0)
  const restored = (more: Record<string, string> = {}) =>
    restore(place, now(pds), { SERVICE_BACKUP_DESTINATION: backups, ...env, ...more })

  const whole = await restored()
  expect(whole).toMatchObject({ code: 0, text: expect.stringMatching(/\b2 blobs verified,(?!.* missing)/) })
  expect(contentsOf(whole.dataDir)).toEqual(['a blob', 'another blob'])

  const cid = blobs[0]!.ref.$link
  truncateSync(
    objectsAt(backups).find((path) => path.endsWith(`${cid}.age`))!,
    100,
  )
  const { code, text, dataDir } = await restored()
  expect([code, contentsOf(dataDir)]).toEqual([0, ['another blob']])
  expect(text).toContain(`blob ${cid} is not in the backup`)

  for (const [more, why] of [
    [{ SERVICE_BACKUP_PASSPHRASE: 'another passphrase' }, 'the passphrase does not decrypt these backups'],
    [{ SERVICE_BACKUP_DESTINATION: newFolder() }, 'there are no backups at this destination'],
  ] as const) {
    const without = await restored(more)
    expect(without.code).toBe(0)
    expect(without.text).toContain(why)
    for (const { ref } of blobs) expect(without.text).toContain(`blob ${ref.$link} is not in the backup`)
  }
})

test('the same chain goes on after a restart, and another one begins if the database was changed without it', async () => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  await pds.restart()
  const before = await post(alice, 'after a restart')
  await sent(pds)
  const chains = () => new Set(segments(place).map((path) => path.split('/').at(-2)))
  expect(chains().size).toBe(1)
  const restored = await restore(place, now(pds))
  expect(await paths(restored.dataDir)).toEqual([before])

  // Nothing follows what a server writes without it.
  await pds.restart({ backup: { continuous: null } })
  const unfollowed = await post(alice, 'not followed')
  await pds.restart()
  const after = await post(alice, 'on another chain')
  await sent(pds)
  expect(chains().size).toBe(2)
  const latest = await restore(place, now(pds))
  expect(await paths(latest.dataDir)).toEqual([before, unfollowed, after].toSorted())
})

test('what is older than the kept time is deleted, and every kept instant can be restored', async () => {
  const place = newFolder()
  await using pds = await start(place, { continuousKeepSecs: 360, continuousBaseSecs: 60 })
  const alice = await createAccount(pds, 'alice')
  const bases = () =>
    objectsAt(place)
      .filter((path) => path.includes('/base-'))
      .map((path) => Number(path.split('-').at(-1)))
  const instants: string[] = []
  for (let i = 0; i < 12; i++) {
    await post(alice, `note ${i}`)
    await sent(pds)
    instants.push(now(pds))
    // Each one makes a base, but the first, which comes with one.
    if (i > 0) await until(() => Math.max(...bases()) > Date.parse(instants[i]!) - 60_000)
    pds.clock.advance({ secs: 70 })
  }
  await until(() => Math.min(...bases()) > Date.parse(instants[1]!))
  expect(await restore(place, instants[0]!)).toMatchObject({
    code: 1,
    text: expect.stringContaining('reaches back only to'),
  })
  for (const index of [7, 9, 11]) {
    const { code, text, dataDir } = await restore(place, instants[index]!)
    expect({ index, code, text }).toMatchObject({ index, code: 0 })
    expect(await paths(dataDir)).toHaveLength(index + 1)
  }
})

test('what killed servers have written of bases in part is deleted at the next base, unless it may be under way', async () => {
  const place = newFolder()
  await using pds = await start(place, { continuousBaseSecs: 60 })
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  const base = objectsAt(place).find((path) => path.includes('/base-'))!
  const [left, underWay] = [1, 2].map(() => `${base}.${crypto.randomUUID()}.part`) as [string, string]
  for (const path of [left, underWay]) writeFileSync(path, 'the first pages')
  const twoDaysAgo = Date.now() / 1000 - 2 * 86_400
  utimesSync(left, twoDaysAgo, twoDaysAgo)
  pds.clock.advance({ secs: 70 })
  await post(alice, 'later')
  await until(() => !existsSync(left))
  expect(existsSync(underWay)).toBe(true)
})

/** Instants of the bases at a place. */
const basesAt = (place: string) =>
  objectsAt(place)
    .filter((path) => path.includes('/base-'))
    .map((path) => Number(path.split('-').at(-1)))

test('a restore says when what follows has later instants only because the clock of the server was ahead', async () => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await createAccount(pds, 'alice')
  const first = await post(alice, 'first')
  await sent(pds)
  const before = now(pds)
  pds.clock.jump({ secs: 3600 })
  const ahead = [await post(alice, 'ahead')]
  await sent(pds)
  pds.clock.jump({ secs: -3600 })
  ahead.push(await post(alice, 'back'))
  await sent(pds)
  const said = /the clock of the server was ahead.* use --at with a later instant/

  const earlier = await restore(place, before)
  expect(earlier).toMatchObject({ code: 0, text: expect.stringMatching(said) })
  expect(await paths(earlier.dataDir)).toEqual([first])
  const all = await restore(place, '9999-12-31T00:00:00Z')
  expect(all).toMatchObject({ code: 0, text: expect.not.stringMatching(said) })
  expect(await paths(all.dataDir)).toEqual([first, ...ahead].toSorted())

  for (const path of objectsAt(place).filter((each) => each.includes('/base-')))
    renameSync(path, path.replace(/\d+$/, String(Date.now() + 86_400_000)))
  expect(await restore(place, before)).toMatchObject({ code: 1, text: expect.stringMatching(said) })
})

test('a clock that is ahead for a while has no kept instant deleted, and makes no more bases than are due', async () => {
  const place = newFolder()
  await using pds = await start(place, { continuousKeepSecs: 360, continuousBaseSecs: 60 })
  const alice = await createAccount(pds, 'alice')
  const instants: string[] = []
  for (let i = 0; i < 3; i++) {
    await post(alice, `note ${i}`)
    await sent(pds)
    instants.push(now(pds))
    await until(() => basesAt(place).length === i + 1)
    pds.clock.advance({ secs: 70 })
  }
  pds.clock.jump({ secs: 3000 })
  const ahead = pds.clock.now()
  await post(alice, 'ahead')
  // What the server writes by itself may have made another one just before.
  await until(() => basesAt(place).some((at) => at >= ahead))
  const count = basesAt(place).length
  pds.clock.jump({ secs: -3000 })
  await post(alice, 'back')
  await until(() => basesAt(place).length === count + 1)
  // Each of these would make another one, if the time of the last base were taken for what the clock says.
  for (let i = 0; i < 5; i++) {
    await post(alice, `later ${i}`)
    await sent(pds)
  }
  expect(basesAt(place)).toHaveLength(count + 1)
  for (const [index, instant] of instants.entries()) {
    const { code, text, dataDir } = await restore(place, instant)
    expect({ code, text }).toMatchObject({ code: 0 })
    expect(await paths(dataDir)).toHaveLength(index + 1)
  }
})

test.each([
  ['the key of the chain', (path: string) => path.endsWith('/key')],
  ['everything', () => true],
])('a destination that has lost %s has it again within the hour', async (_, isLost) => {
  const place = newFolder()
  await using pds = await start(place)
  const alice = await createAccount(pds, 'alice')
  const first = await post(alice, 'first')
  await sent(pds)
  await until(() => basesAt(place).length === 1)
  for (const path of objectsAt(place).filter(isLost)) rmSync(path)
  const before = basesAt(place).length
  pds.clock.advance({ secs: 3600 })
  const second = await post(alice, 'second')
  await until(() => basesAt(place).length === before + 1)
  await sent(pds)
  const { code, text, dataDir } = await restore(place, '2100-01-01T00:00:00Z')
  expect({ code, text }).toMatchObject({ code: 0 })
  expect(await paths(dataDir)).toEqual([first, second].toSorted())
})

test('a base that is refused stays a fault until there is one, and is not tried over and over', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousLagMs: 100, continuousBaseSecs: 60 }
  await using pds = await start(place, backup)
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  await until(() => basesAt(place).length === 1)
  const pieces = () => objectsAt(place).filter((path) => path.includes('/piece-')).length
  const before = pieces()
  // The destination is not encrypted.
  await pds.restart({ backup: { ...backup, passphrase: new Secret(PASSPHRASE) } })
  pds.clock.advance({ secs: 70 })
  const refused = () => pds.log.filter(({ message }) => message.includes('could not make a base')).length
  for (const text of ['first', 'second', 'third']) {
    await post(alice, text)
    await sent(pds)
    await until(async () => (await stateOf(pds)).fault === true)
    pds.clock.advance({ secs: 600 })
  }
  expect(refused()).toBe(1)
  expect([pieces(), basesAt(place).length]).toEqual([before, 1])
  await pds.restart({ backup })
  await post(alice, 'fourth')
  await until(() => basesAt(place).length === 2)
  await sent(pds)
  expect(await stateOf(pds)).toMatchObject({ fault: false })
})

/** A bucket as destination, and what its requests meet. */
async function withBucket(backup: ConfigOverrides['backup'] = {}) {
  const bucket = await startBucket()
  const { bucket: name, ...blobMirror } = bucket.mirror
  const place = `s3://${name}/continuous-backup`
  const pds = await start(place, backup, { blobMirror })
  const env = {
    SERVICE_BLOB_MIRROR_ENDPOINT: blobMirror.endpoint,
    SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: blobMirror.accessKeyId,
    SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: blobMirror.secretAccessKey.reveal(),
    SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
  }
  return {
    bucket,
    pds,
    place,
    restore: () => restore(place, now(pds), env),
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      await bucket[Symbol.asyncDispose]()
    },
  }
}

test('what a server commits before it has seen its lease again belongs to the chain like all before it', async () => {
  await using world = await withBucket()
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  const written = [await post(alice, 'before')]
  await sent(pds)
  const before = bucket.keys()
  await pds.stop()
  bucket.fault = 'down'
  await pds.restart()
  written.push(await post(alice, 'while the lease cannot be read'))
  await until(async () => (await stateOf(pds)).spooledBytes > 0)
  bucket.fault = null
  await sent(pds)
  written.push(await post(alice, 'after'))
  await sent(pds)
  // It is the same chain.
  expect(bucket.keys().filter((key) => key.endsWith('/key'))).toEqual(before.filter((key) => key.endsWith('/key')))
  const restored = await world.restore()
  expect(restored.code, restored.text).toBe(0)
  expect(await paths(restored.dataDir)).toEqual(written.toSorted())
})

test.each([
  ['belongs to the chain', true],
  ['is in a base of another chain if the disk does not take it', false],
])('what is committed while a stopping server sends its last segment %s', async (_, isTaken) => {
  await using world = await withBucket()
  const { bucket, pds, place } = world
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  const chains = () => bucket.keys().filter((key) => key.endsWith('/key'))
  const before = chains()
  // Nothing but the end of the server seals a segment.
  await pds.restart({ backup: { continuous: place, continuousLagMs: 60_000 } })
  const write = (email: string) => pds.damage('account', { did: alice.did }, { email })
  await write('early@example.com')
  const spool = join(pds.dataDir, 'continuous')
  const late = Promise.withResolvers<void>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    bucket.intercept = null
    if (!isTaken) renameSync(spool, `${spool}.away`)
    late.resolve(write('late@example.com').finally(() => bucket.pass(incoming, response)))
    return true
  }
  await pds.stop()
  await late.promise
  if (!isTaken) renameSync(`${spool}.away`, spool)
  await pds.restart({ backup: { continuous: place, continuousLagMs: 100 } })
  const written = await post(alice, 'after the restart')
  await sent(pds)
  expect(chains()).toHaveLength(isTaken ? 1 : 2)
  expect(chains()).toEqual(expect.arrayContaining(before))
  const restored = await world.restore()
  expect(restored.code, restored.text).toBe(0)
  {
    await using server = await startOn(restored.dataDir)
    const { body } = await request(`${server.url}/xrpc/com.atproto.server.createSession`, {
      method: 'POST',
      json: { identifier: alice.did, password: alice.password },
    })
    expect(body.email).toBe('late@example.com')
  }
  expect(await paths(restored.dataDir)).toEqual([written])
})

test('a bucket that is down stops no write: what it lacks waits on the disk, and is sent when it is back', async () => {
  await using world = await withBucket()
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  bucket.fault = 'down'
  const written = [await post(alice, 'while it is down')]
  await until(async () => (await stateOf(pds)).fault === true)
  expect(await stateOf(pds)).toMatchObject({ spooledBytes: expect.any(Number) })
  written.push(await post(alice, 'and later'))
  const metrics = await request(`${pds.url}/metrics`)
  expect(metrics.body).toMatch(/holdfast_continuous_backup_lag_seconds(\{[^}]*\})? [\d.]*[1-9]/)
  // What waits survives a restart.
  await pds.restart()
  bucket.fault = null
  await sent(pds)
  expect(await stateOf(pds)).toEqual({ promise: 'async', lagMillis: 0, spooledBytes: 0, fault: false })
  const restored = await world.restore()
  expect(restored.code).toBe(0)
  expect(await paths(restored.dataDir)).toEqual(written.toSorted())
})

test('a server that starts again while the bucket is down says how old the oldest commit is that the bucket lacks', async () => {
  await using world = await withBucket()
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  bucket.fault = 'down'
  await post(alice, 'waits')
  await until(async () => (await stateOf(pds)).fault)
  pds.clock.advance({ secs: 90 })
  for (let starts = 1; starts <= 2; starts++) {
    await pds.restart()
    pds.clock.advance({ secs: 10 })
    expect((await stateOf(pds)).lagMillis).toBeGreaterThan((90 + starts * 10) * 1000)
  }
  bucket.fault = null
  await sent(pds)
  await pds.restart()
  // What it finds there, it has not waited for.
  expect((await stateOf(pds)).lagMillis).toBeLessThan(90_000)
})

test('a bucket may lose answers, claim what is not so, and list nothing new', async () => {
  await using world = await withBucket()
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  const seen = new Map<string, number>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    const tries = (seen.get(key) ?? 0) + 1
    seen.set(key, tries)
    // The first claims to have it, the second has it and does not say so.
    if (tries === 1) {
      incoming.resume()
      response.writeHead(200, { etag: '"claimed"' }).end()
      return true
    }
    if (tries === 2) {
      response.end = () => {
        incoming.socket.destroy()
        return response
      }
      bucket.pass(incoming, response)
      return true
    }
    return false
  }
  const written = [await post(alice, 'one'), await post(alice, 'two')]
  await sent(pds)
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'GET' || !(incoming.url ?? '').includes('list-type') || key !== '') return false
    const listed = bucket.keys().filter((each) => !each.includes('/segment-'))
    const contents = listed.map((each) => `<Contents><Key>${each}</Key><Size>1</Size></Contents>`)
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(`<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`)
    return true
  }
  const restored = await world.restore()
  expect(restored.code).toBe(0)
  expect(await paths(restored.dataDir)).toEqual(written.toSorted())
})

test('a full spool ends the chain, and another one begins once the destination is back', async () => {
  await using world = await withBucket({ continuousSpoolBytes: 1024 ** 2 })
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await sent(pds)
  bucket.fault = 503
  const written: string[] = []
  const isFull = () => pds.log.some(({ message }) => message.includes('continuous backup interrupted'))
  const incompressible = () => Array.from({ length: 2000 }, () => crypto.randomUUID()).join('')
  while (!isFull()) written.push(await post(alice, incompressible()))
  written.push(await post(alice, 'after it was full'))
  expect((await stateOf(pds)).spooledBytes).toBeLessThan(3 * 1024 ** 2)
  bucket.fault = null
  await sent(pds)
  const restored = await world.restore()
  expect(restored.code).toBe(0)
  expect(await paths(restored.dataDir)).toEqual(written.toSorted())
  expect(bucket.keys().filter((key) => key.endsWith('/key'))).toHaveLength(2)
})

const isKept = (pds: TestPds) => until(async () => (await stateOf(pds)).promise === 'sync')

test('with the promise of sync, what was acknowledged can be restored at once', async () => {
  const place = newFolder()
  await using pds = await start(place, { continuousPromise: 'sync' })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  const written: string[] = []
  for (let round = 0; round < 3; round++) {
    written.push(...(await Promise.all(Array.from({ length: 5 }, (_, i) => post(alice, `note ${round} ${i}`)))))
    const { code, dataDir } = await restore(place, now(pds))
    expect(code).toBe(0)
    expect(await paths(dataDir)).toEqual(written.toSorted())
    // Everything is at the destination before the port opens.
    await pds.restart()
    expect(await stateOf(pds)).toEqual({ promise: 'sync', lagMillis: 0, spooledBytes: 0, fault: false })
  }
})

test('with the promise of sync, a bucket that is down refuses writes, and nobody sees what it does not have', async () => {
  await using world = await withBucket({ continuousPromise: 'sync' })
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  const first = await post(alice, 'first')
  const relay = new Subscriber(pds.url, '?cursor=0')
  const carries = (path: string) => (messages: readonly { body: unknown }[]) =>
    messages.some(({ body }) => JSON.stringify(body).includes(path.split('/').at(-1)!))
  await relay.untilSeen(carries(first))

  bucket.fault = 'down'
  const attempt = (text: string, rkey: string) =>
    alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'org.example.note', rkey, record: { $type: 'org.example.note', text } },
    })
  const listed = async () =>
    (
      await request(`${pds.url}/xrpc/com.atproto.repo.listRecords?repo=${alice.did}&collection=org.example.note`)
    ).body.records.map(({ uri }: { uri: string }) => pathOf(uri))
  const unknown = await attempt('while it is down', 'unknown')
  expect(unknown).toMatchObject({
    status: 503,
    body: { error: 'ServiceUnavailable', message: expect.stringContaining('may still take effect') },
  })
  const refused = await attempt('and later', 'refused')
  expect(refused.status).toBe(503)
  expect(refused.body.message).not.toContain('may still take effect')
  expect(await request(`${pds.url}/readyz`)).toMatchObject({
    status: 503,
    body: { reason: expect.stringContaining('continuous backup'), continuousBackup: { promise: 'sync', fault: true } },
  })
  expect((await request(`${pds.url}/xrpc/_health`)).status).toBe(503)
  expect(await listed()).toEqual([first])
  const archive = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}`)
  expect(archive.status).toBe(200)
  expect(Buffer.from(await archive.bytes()).includes('while it is down')).toBe(false)
  expect(JSON.stringify(relay.messages)).not.toContain('unknown')
  const absent = await world.restore()
  expect(absent.code).toBe(1)

  bucket.fault = null
  await until(async () => (await request(`${pds.url}/readyz`)).status === 200)
  const last = await post(alice, 'it is back')
  await relay.untilSeen(carries(last))
  relay.close()
  expect(await listed()).toEqual(expect.arrayContaining([first, last, 'org.example.note/unknown']))
  expect(await listed()).toHaveLength(3)
  const restored = await world.restore()
  expect(await paths(restored.dataDir)).toEqual([first, last, 'org.example.note/unknown'].toSorted())
})

const uploadsOf =
  ({ url }: TestPds, { accessJwt }: TestAccount) =>
  (text: string) =>
    request(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
      method: 'POST',
      body: text,
      headers: { ...bearer(accessJwt), 'content-type': 'text/plain' },
    })

test('with the promise of sync, an upload is acknowledged once the mirror has its copy', async () => {
  await using bucket = await startBucket()
  await using pds = await start(newFolder(), { continuousPromise: 'sync' }, { blobMirror: bucket.mirror })
  const upload = uploadsOf(pds, await createAccount(pds, 'alice'))
  const { body } = await upload('a blob')
  const key = bucket.keys().find((each) => each.endsWith(body.blob.ref.$link))!
  expect(Buffer.from(bucket.read(key)).toString()).toBe('a blob')
  // Nothing is sent twice.
  const puts = () => bucket.requests.filter((each) => each.startsWith('PUT')).length
  const before = puts()
  expect((await upload('a blob')).status).toBe(200)
  expect(puts()).toBe(before)
  bucket.fault = 503
  expect(await upload('another blob')).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
  bucket.fault = null
  expect((await upload('another blob')).status).toBe(200)
})

test('with the promise of sync, the mirror has the copy of an upload that came while it deleted an earlier one', async () => {
  await using bucket = await startBucket()
  await using pds = await start(newFolder(), { continuousPromise: 'sync' }, { blobMirror: bucket.mirror })
  const upload = uploadsOf(pds, await createAccount(pds, 'alice'))
  await upload('one that stays')
  const { $link: cid } = (await upload('comes back')).body.blob.ref
  await pds.lose('blob', { cid })
  await pds.runSweep('blob-mirror')
  const { promise: held, resolve: hold } = Promise.withResolvers<() => void>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'DELETE' || !key.endsWith(cid)) return false
    hold(() => bucket.pass(incoming, response))
    return true
  }
  const pass = pds.runSweep('blob-mirror')
  const release = await held
  let isUploaded = false
  const uploaded = upload('comes back').finally(() => (isUploaded = true))
  await until(() => isUploaded || readdirSync(join(pds.dataDir, 'blobs', '.incoming')).length === 1)
  await upload('one that comes meanwhile')
  release()
  expect(await pass).toMatchObject({ deleted: 1, errors: 0 })
  expect((await uploaded).status).toBe(200)
  expect(bucket.keys().some((key) => key.endsWith(cid))).toBe(true)
})

test('with the promise of sync, a server whose chain another one continues stops, and acknowledges nothing', async () => {
  await using world = await withBucket({ continuousPromise: 'sync' })
  const { bucket, pds } = world
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  await post(alice, 'first')
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    bucket.intercept = null
    void bucket.write(key, Buffer.from('of another server')).then(() => bucket.pass(incoming, response))
    return true
  }
  const refused = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record: { $type: 'org.example.note', text: 'lost' } },
  })
  expect(refused.status).toBe(503)
  expect(refused.body.message).toContain('may still take effect')
  const { body } = await request(`${pds.url}/readyz`)
  expect(body).toMatchObject({ status: 'unavailable', continuousBackup: { fault: true } })
  await until(() => bucket.underWay === 0)
  const before = bucket.requests.length
  expect((await alice.call('com.atproto.server.createAppPassword', { json: { name: 'later' } })).status).toBe(503)
  expect(bucket.requests).toHaveLength(before)
})
