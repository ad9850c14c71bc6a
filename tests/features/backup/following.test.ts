/** A machine that follows another one's continuous backup, and what keeps it from taking over without all of it. */
import { afterAll, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp, withContext } from '../../../src/app.ts'
import { Following } from '../../../src/features/operations/backup/backup.ts'
import {
  digestOf,
  headerOf,
  sealObject,
  segmentName,
} from '../../../src/features/operations/backup/continuous-format.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Config } from '../../../src/platform/configuration/config.ts'
import { sqlitePath } from '../../../src/platform/database/sqlite.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { testLog } from '../../support/log.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { beginProgram, runProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { create, isKept, objectNames, post } from './kept-notes.ts'
import { thrownBy } from '../../support/thrown.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-following-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

/** A data directory that follows; each call is another start of its process. */
async function machine(backup: ConfigOverrides['backup'], blobMirror: ConfigOverrides['blobMirror'] = {}) {
  const place = { dataDir: newFolder(), port: await freePort(), publicUrl: 'http://localhost:1' }
  const config = testConfig(place, { backup, blobMirror, development: true })
  const { log } = testLog(() => systemClock.now())
  return { config, begin: () => new Following({ config, clock: systemClock, log }) }
}

/** Until it has all that is there; then it is stopped. */
async function followOnce(following: Following): Promise<void> {
  const stopping = new AbortController()
  const done = following.run(stopping.signal)
  await until(() => following.state.behindMillis !== null)
  stopping.abort()
  expect(await done).toBeNull()
}

/** The records that the server on this data directory has. */
async function notes(config: Config, { did }: TestAccount): Promise<string[]> {
  const app = await startApp(config)
  try {
    const query = `repo=${did}&collection=org.example.note`
    const { body } = await request(`http://localhost:${config.port}/xrpc/com.atproto.repo.listRecords?${query}`)
    return body.records.map(({ uri }: { uri: string }) => uri.split('/').at(-1)!).toSorted()
  } finally {
    await app.stop()
  }
}

/** What the running check says of the account on this data directory. */
const faults = (config: Config, { did }: TestAccount) => withContext(config, (ctx) => faultsOfRepo(ctx, did as Did))

const segments = (place: string) => objectNames(place, 'segment-')

test('a machine that was away for longer than segments are kept takes over with all that was acknowledged', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync', continuousLagMs: 100 } as const
  await using pds = await startPdsOnFile({ backup: { ...backup, continuousKeepSecs: 120, continuousBaseSecs: 60 } })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  await post(alice, 'before')
  const other = await machine(backup)
  await followOnce(other.begin())
  const oldest = segments(place).at(-1)!
  const written = ['before']
  while (segments(place)[0]! <= oldest) {
    const newest = objectNames(place, 'base-').at(-1)
    pds.clock.advance({ secs: 70 })
    written.push(`note${written.length}`)
    await post(alice, written.at(-1)!)
    // Each one makes a base, and all that no restore needs is deleted after that.
    await until(() => objectNames(place, 'base-').at(-1) !== newest || segments(place)[0]! > oldest)
  }
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(written.toSorted())
  expect(await faults(other.config, alice)).toEqual([])
})

test('a request for a takeover that is too old when a follower starts is dropped, and a recent one is carried out', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync', continuousLagMs: 100 } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  const { config, begin } = await machine(backup)
  await followOnce(begin())
  const asked = join(config.dataDir, 'holdfast.promote')
  const ageSecs = async (secs: number) => {
    await Following.ask(config)
    const at = Date.now() / 1000 - secs
    utimesSync(asked, at, at)
  }
  await ageSecs(600)
  await followOnce(begin())
  expect(existsSync(asked)).toBe(false)
  await post(alice, 'kept')
  await ageSecs(60)
  expect(await begin().run(new AbortController().signal)).not.toBeNull()
  expect(await notes(config, alice)).toEqual(['kept'])
})

test('a machine makes a new copy if what it noted about the old one is not whole', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousPromise: 'sync', continuousLagMs: 100 } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  const other = await machine(backup)
  const noted = join(other.config.dataDir, 'holdfast.following')
  for (const [name, keptBytes] of [
    ['empty', 0],
    ['half', 40],
  ] as const) {
    await followOnce(other.begin())
    await post(alice, name)
    truncateSync(noted, keptBytes)
  }
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(['empty', 'half'])
  expect(await faults(other.config, alice)).toEqual([])
})

/** A server with `sync` that was killed once it had acknowledged four posts. `noted` has its data as of the first. */
async function killedAfterPosts() {
  const place = newFolder()
  const folder = newFolder()
  const noted = newFolder()
  mkdirSync(folder)
  const env = {
    PORT: String(await freePort()),
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_BACKUP_CONTINUOUS: place,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
  }
  const data = join(folder, 'data')
  const state = join(data, 'continuous')
  let alice: TestAccount
  {
    await using server = await startProgram(['dev'], env, folder)
    alice = await createAccount(server, 'alice')
    await isKept(server)
    await post(alice, 'first')
    cpSync(data, noted, { recursive: true })
    for (const name of ['second', 'third', 'fourth']) await post(alice, name)
    server.signal('SIGKILL')
    await server.exited
  }
  return { place, folder, env, noted, data, state, alice, before: segments(place) }
}

test('a loss of power that took what was noted last about the chain does not keep the server from starting; an older disk does', async () => {
  const { place, folder, env, noted, data, state, alice, before } = await killedAfterPosts()
  // An older state of the whole disk is another matter: it lacks what was acknowledged.
  renameSync(data, `${data}.newest`)
  cpSync(noted, data, { recursive: true })
  expect(await thrownBy(startProgram(['dev'], env, folder))).toThrow('has writes that this database lacks')
  rmSync(data, { recursive: true })
  renameSync(`${data}.newest`, data)
  rmSync(state, { recursive: true })
  cpSync(join(noted, 'continuous'), state, { recursive: true })
  {
    await using server = await startProgram(['dev'], env, folder)
    await isKept(server)
    await createAccount(server, 'bob')
  }
  // The chain goes on where it was.
  expect(objectNames(place, 'key')).toHaveLength(1)
  expect(segments(place).slice(0, before.length)).toEqual(before)
  const other = await machine({ continuous: place, continuousPromise: 'sync' })
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(['first', 'fourth', 'second', 'third'])
})

const placeIn = ({ mirror }: BucketHost) => `s3://${mirror.bucket}/backup`

/** What the program needs for `sync` to a bucket. */
const envOf = (bucket: BucketHost): Record<string, string> => ({
  SERVICE_BACKUP_CONTINUOUS: placeIn(bucket),
  SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
  SERVICE_BLOB_MIRROR_ENDPOINT: bucket.mirror.endpoint,
  SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: bucket.mirror.accessKeyId,
  SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: bucket.mirror.secretAccessKey.reveal(),
  SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: String(bucket.mirror.forcePathStyle),
})

/** A server in a folder, with `sync` to a bucket. */
async function syncedToBucket(bucket: BucketHost) {
  const folder = newFolder()
  mkdirSync(folder)
  const env = { ...envOf(bucket), PORT: String(await freePort()), SERVICE_RATE_LIMIT_ENABLED: 'false' }
  return { place: placeIn(bucket), folder, env }
}

test.each([
  ['has looked is what that one goes on from', null],
  ['was killed too, and could send nothing, is what the third one goes on from', 'SIGKILL'],
  ['was stopped, and could send nothing, is what the third one goes on from', 'SIGTERM'],
] as const)('a segment of a killed server that arrives once the next one %s', async (_, signal) => {
  await using bucket = await startBucket()
  const { place, folder, env } = await syncedToBucket(bucket)
  const sent: { key: string; content: Promise<Uint8Array> }[] = []
  let alice: TestAccount
  {
    await using server = await startProgram(['dev'], env, folder)
    alice = await createAccount(server, 'alice')
    await isKept(server)
    await post(alice, 'kept')
    bucket.intercept = (incoming, _, key) => {
      if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
      sent.push({ key, content: incoming.toArray().then((chunks) => Buffer.concat(chunks)) })
      return true
    }
    const unknown = [thrownBy(create(alice, 'under-way'))]
    await until(() => sent.length === 1)
    await sent[0]!.content
    unknown.push(thrownBy(create(alice, 'after-it')))
    await until(() => sent.length === 2)
    server.signal('SIGKILL')
    await server.exited
    await Promise.all(unknown)
  }
  // The second one never arrives.
  const { key, content } = sent[0]!
  if (signal !== null) {
    let tries = 0
    bucket.intercept = (incoming, response, asked) => {
      if (incoming.method !== 'PUT' || asked !== key) return false
      tries++
      response.writeHead(503).end()
      return true
    }
    await using server = beginProgram(['dev'], env, folder)
    const listening = thrownBy(server.listening)
    await until(() => tries > 1)
    server.signal(signal)
    expect(await listening).toThrow('ended before it listened')
    if (signal === 'SIGTERM') expect(await server.exited).toBe(0)
  }
  bucket.intercept = (incoming, response, asked) => {
    if (incoming.method !== 'PUT' || asked !== key) return false
    bucket.intercept = null
    void content.then((bytes) => bucket.write(key, bytes)).then(() => bucket.pass(incoming, response))
    return true
  }
  {
    await using server = await startProgram(['dev'], env, folder)
    expect(bucket.intercept).toBeNull()
    await post(await logIn(server, alice, alice.password), 'later')
  }
  const blobMirror = { ...bucket.mirror, bucket: null }
  const other = await machine({ continuous: place, continuousPromise: 'sync' }, blobMirror)
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(['after-it', 'kept', 'later', 'under-way'])
  expect(await faults(other.config, alice)).toEqual([])
})

test('a server whose chain has a segment of another database under its next number does not start', async () => {
  await using bucket = await startBucket()
  const { folder, env } = await syncedToBucket(bucket)
  {
    await using server = await startProgram(['dev'], env, folder)
    const alice = await createAccount(server, 'alice')
    await isKept(server)
    let isSent = false
    bucket.intercept = (incoming, _, key) => (isSent ||= incoming.method === 'PUT' && key.includes('/segment-'))
    const unknown = thrownBy(create(alice, 'unknown'))
    await until(() => isSent)
    server.signal('SIGKILL')
    await server.exited
    await unknown
  }
  const { key } = JSON.parse(readFileSync(join(folder, 'data/continuous/state.json'), 'utf8')) as { key: string }
  bucket.intercept = (incoming, response, name) => {
    if (incoming.method !== 'PUT' || !name.includes('/segment-')) return false
    bucket.intercept = null
    void incoming
      .toArray()
      .then((chunks) => {
        const header = headerOf(Buffer.concat(chunks))!
        const position = { salts: '0123456789abcdef', frames: 1, checksum: 'fedcba9876543210' }
        return sealObject(Buffer.from(key, 'base64'), { ...header, position }, new Uint8Array(4))
      })
      .then((bytes) => bucket.write(name, bytes))
      .then(() => response.writeHead(412).end())
    return true
  }
  const keys = bucket.keys()
  for (let starts = 1; starts <= 2; starts++)
    expect(await thrownBy(startProgram(['dev'], env, folder))).toThrow('has another content')
  // It has stored nothing, and begun no other chain.
  expect(bucket.keys()).toHaveLength(keys.length + 1)
})

/** Keep the next request that replaces or creates such an object on its way. Returns what delivers it. */
function hold(bucket: BucketHost, part: string): { isThere(): boolean; deliver(): Promise<number> } {
  let held: { pass(): void; status: Promise<number> } | null = null
  bucket.intercept = (incoming, response, key) => {
    if (held !== null || incoming.method !== 'PUT' || !key.includes(part)) return false
    const { promise, resolve } = Promise.withResolvers<number>()
    response.on('close', () => resolve(response.statusCode))
    held = { pass: () => bucket.pass(incoming, response), status: promise }
    return true
  }
  return {
    isThere: () => held !== null,
    deliver() {
      held!.pass()
      return held!.status
    },
  }
}

/** A server with an account, whose continuous backup a bucket has. */
async function keptInBucket({ isMirrored = false } = {}) {
  const bucket = await startBucket()
  const backup = { continuous: placeIn(bucket), continuousPromise: 'sync' } as const
  const blobMirror = isMirrored ? bucket.mirror : { ...bucket.mirror, bucket: null }
  const pds = await startPdsOnFile({ backup, blobMirror })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  return {
    bucket,
    backup,
    blobMirror,
    pds,
    alice,
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      await bucket[Symbol.asyncDispose]()
    },
  }
}

test('a segment that the network delivers after the takeover counts for nothing', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, alice } = server
  await post(alice, 'before')
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())

  const late = hold(bucket, '/segment-')
  const refused = create(alice, 'late')
  await until(late.isThere)
  await other.begin().promote()
  expect(await late.deliver()).toBe(412)
  expect(await refused).toMatchObject({
    status: 503,
    body: { message: expect.stringContaining('may still take effect') },
  })
  expect((await create(alice, 'later')).status).toBe(503)
  expect(await notes(other.config, alice)).toEqual(['before'])
})

test('a server that does not know yet that it was replaced keeps its database while it runs', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, pds, alice } = server
  const other = await machine(backup, blobMirror)
  await other.begin().promote()
  const { dataDir, databaseUrl, publicUrl } = pds.ctx.config
  const { code, err } = await runProgram(['follow', '--dev'], {
    ...envOf(bucket),
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PUBLIC_URL: publicUrl,
  })
  expect([code, err]).toEqual([1, expect.stringContaining('is in use by another process')])
  expect(existsSync(sqlitePath(databaseUrl))).toBe(true)
  expect((await create(alice, 'later')).status).toBe(503)
})

test('a server that does not know yet that it was replaced deletes no copies of blobs', async () => {
  await using server = await keptInBucket({ isMirrored: true })
  const { bucket, backup, blobMirror, pds, alice } = server
  const [kept, dropped] = await Promise.all(
    ['kept', 'dropped'].map(async (content) => {
      const upload = { method: 'POST', body: content, headers: { 'content-type': 'text/plain' } }
      return String((await alice.call('com.atproto.repo.uploadBlob', upload)).body.blob.ref.$link)
    }),
  )
  await pds.lose('blob', { cid: dropped! })
  expect(await pds.runSweep('blob-mirror')).toMatchObject({ deleted: 0, errors: 0 })
  await (await machine(backup, blobMirror)).begin().promote()
  // An account may have uploaded it to the other machine, which relies on the copy.
  expect(await pds.runSweep('blob-mirror')).toMatchObject({ deleted: 0, errors: 1 })
  for (const cid of [kept, dropped]) expect(bucket.keys()).toContain(`blobs/${cid}`)
})

test('a machine that is lost before the chain that it has begun has a base loses nothing that was acknowledged', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, pds, alice } = server
  await post(alice, 'kept')
  const { config } = pds.ctx
  await pds.stop()
  // As after a loss of power that the log of the database does not show.
  rmSync(join(config.dataDir, 'continuous'), { recursive: true })
  const base = hold(bucket, '/base-')
  const started = thrownBy(startApp(config))
  await until(base.isThere)

  const other = await machine(backup, blobMirror)
  await other.begin().promote()
  expect(await base.deliver()).toBe(200)
  expect(await started).toThrow('another machine')
  expect(await notes(other.config, alice)).toEqual(['kept'])
})

test('under async, a copy is not up to date while the machine that serves goes on in a chain that has no base', async () => {
  await using bucket = await startBucket()
  const continuous = `s3://${bucket.mirror.bucket}/backup`
  const backup = { continuous, continuousLagMs: 100, takeoverSecs: 3 } as const
  const blobMirror = { ...bucket.mirror, bucket: null }
  await using pds = await startPdsOnFile({ backup, blobMirror })
  const alice = await createAccount(pds, 'alice')
  const bases = () => bucket.keys().filter((key) => key.includes('/base-')).length
  await until(() => bases() === 1)
  const following = (await machine(backup, blobMirror)).begin()
  const stopping = new AbortController()
  const done = following.run(stopping.signal)
  const isUpToDate = () => following.state.fault === null && (following.state.behindMillis ?? Infinity) < 2000
  await until(isUpToDate)

  const { dataDir } = pds.ctx.config
  await pds.stop()
  rmSync(join(dataDir, 'continuous'), { recursive: true })
  const base = hold(bucket, '/base-')
  await pds.restart()
  await post(alice, 'unseen')
  await until(base.isThere)
  await until(() => following.state.behindMillis === null)
  expect([following.state.fault, bases()]).toEqual([expect.stringContaining('has begun a new chain'), 1])
  await base.deliver()
  await until(isUpToDate)
  stopping.abort()
  expect(await done).toBeNull()
})

test('segments that are stored while one before them is not count for nothing, and the chain goes on without them', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, pds, alice } = server
  await post(alice, 'before')
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())

  const stored = () => bucket.keys().filter((key) => key.includes('/segment-')).length
  const late = hold(bucket, '/segment-')
  const refused = [create(alice, 'late')]
  await until(late.isThere)
  const before = stored()
  for (const rkey of ['after it', 'and after that']) {
    refused.push(create(alice, rkey.replaceAll(' ', '-')))
    await until(() => stored() === before + refused.length - 1)
  }
  const listed = await request(
    `${pds.url}/xrpc/com.atproto.repo.listRecords?repo=${alice.did}&collection=org.example.note`,
  )
  expect(listed.body.records).toHaveLength(1)
  await other.begin().promote()
  expect(await late.deliver()).toBe(412)
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([503, 503, 503])
  expect(await notes(other.config, alice)).toEqual(['before'])

  // It continues the chain, which a third machine follows.
  {
    const app = await startApp(other.config)
    const there = await logIn(app, alice, alice.password)
    await post(there, 'later')
    await app.stop()
  }
  const third = await machine(backup, blobMirror)
  await third.begin().promote()
  expect(await notes(third.config, alice)).toEqual(['before', 'later'])
  expect(await faults(third.config, alice)).toEqual([])
})

test.each([0, 600])(
  'a write that changes nothing is refused after a takeover, and passes before it (with takeover_secs %d)',
  async (takeoverSecs) => {
    await using bucket = await startBucket()
    const backup = {
      continuous: `s3://${bucket.mirror.bucket}/backup`,
      continuousPromise: 'sync',
      takeoverSecs,
    } as const
    const blobMirror = { ...bucket.mirror, bucket: null }
    await using pds = await startPdsOnFile({ backup, blobMirror })
    const alice = await createAccount(pds, 'alice')
    await isKept(pds)
    await post(alice, 'before')
    const drop = (rkey: string) =>
      alice.call('com.atproto.repo.deleteRecord', {
        json: { repo: alice.did, collection: 'org.example.note', rkey },
      })
    const stored = () => bucket.keys().filter((key) => key.includes('/segment-')).length
    // The server itself may store something beside one of them, not beside all.
    const storedBeside: number[] = []
    for (let i = 0; i < 5; i++) {
      const before = stored()
      expect((await drop('none')).status).toBe(200)
      storedBeside.push(stored() - before)
    }
    expect(storedBeside).toContain(0)

    const other = await machine(backup, blobMirror)
    await followOnce(other.begin())
    // Its answer to this one waits for a look at the lease, during which the other takes over.
    const looks: (() => void)[] = []
    bucket.intercept = (incoming, response, key) => {
      if (incoming.method !== 'GET' || !key.endsWith('/lease')) return false
      looks.push(() => bucket.pass(incoming, response))
      return true
    }
    const waiting = drop('none')
    await until(() => looks.length === 1)
    bucket.intercept = null
    await other.begin().promote()
    looks[0]!()
    expect((await waiting).status).toBe(503)
    expect((await drop('none')).status).toBe(503)
    expect(await notes(other.config, alice)).toEqual(['before'])
  },
)

test('a write that changes nothing is refused after a takeover while the answer to a segment before it is late', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, alice } = server
  await post(alice, 'before')
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())
  // It is stored at once, and the answer comes after the takeover.
  const late = Promise.withResolvers<void>()
  const isStored = Promise.withResolvers<void>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'PUT' || !key.includes('/segment-')) return false
    bucket.intercept = null
    const store = async () => {
      const body = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>))
      const headers = incoming.headers as Record<string, string>
      const stored = await fetch(bucket.mirror.endpoint + incoming.url, { method: 'PUT', headers, body })
      isStored.resolve()
      await late.promise
      response.writeHead(stored.status, { etag: stored.headers.get('etag') ?? '' }).end()
    }
    void store()
    return true
  }
  const written = create(alice, 'stored')
  await isStored.promise
  await other.begin().promote()
  const looks = () => bucket.requests.filter((each) => each.startsWith('GET') && each.endsWith('/lease')).length
  const before = looks()
  const dropped = alice.call('com.atproto.repo.deleteRecord', {
    json: { repo: alice.did, collection: 'org.example.note', rkey: 'made-by-the-other' },
  })
  await until(() => looks() > before)
  late.resolve()
  expect((await dropped).status).toBe(503)
  // It is in the chain, so both answers are true.
  expect([200, 503]).toContain((await written).status)
  expect(await notes(other.config, alice)).toEqual(['before', 'stored'])
})

test('a machine that was replaced refuses nothing for what it has of the past', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, alice } = server
  await post(alice, 'before')
  const swap = () =>
    alice.call('com.atproto.repo.putRecord', {
      json: {
        repo: alice.did,
        collection: 'org.example.note',
        rkey: 'before',
        record: { $type: 'org.example.note', text: 'other' },
        swapRecord: 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a',
      },
    })
  expect((await swap()).body.error).toBe('InvalidSwap')
  const other = await machine(backup, blobMirror)
  await other.begin().promote()
  // It does not know of its own accord that it was replaced.
  const isAsked = bucket.requests.length
  expect((await swap()).status).toBe(503)
  expect(bucket.requests.length).toBeGreaterThan(isAsked)
})

test('an older disk keeps the server from starting, also if it knows nothing of the chain', async () => {
  const { place, folder, env, noted, data, before } = await killedAfterPosts()
  rmSync(data, { recursive: true })
  cpSync(noted, data, { recursive: true })
  rmSync(join(data, 'continuous'), { recursive: true })
  expect(await thrownBy(startProgram(['dev'], env, folder))).toThrow('has writes that this database lacks')
  expect(segments(place)).toEqual(before)
})

test('a segment that was sent before it was in the spool, where others wait, does not keep the server from starting', async () => {
  const { place, folder, env, noted, state, alice, before } = await killedAfterPosts()
  // The spool as of the first segment after that: it waits, and was sent, and so were the next ones.
  const chain = JSON.parse(readFileSync(join(noted, 'continuous', 'state.json'), 'utf8')) as {
    chain: string
    next: number
  }
  const sent = readFileSync(join(place, segmentName(chain.chain, chain.next)))
  const { number, at, position } = headerOf(sent)!
  rmSync(state, { recursive: true })
  mkdirSync(state)
  writeFileSync(join(state, `${number}.segment`), sent)
  writeFileSync(
    join(state, 'state.json'),
    JSON.stringify({ ...chain, number, next: number + 1, digest: digestOf(sent), at, position }),
  )
  {
    await using server = await startProgram(['dev'], env, folder)
    await isKept(server)
    await post(alice, 'fifth')
  }
  expect(objectNames(place, 'key')).toHaveLength(1)
  expect(segments(place).slice(0, before.length)).toEqual(before)
  const other = await machine({ continuous: place, continuousPromise: 'sync' })
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(['fifth', 'first', 'fourth', 'second', 'third'])
})

test('a machine that was replaced tells no relay that its cursor is in the future', async () => {
  await using bucket = await startBucket()
  const backup = { continuous: `s3://${bucket.mirror.bucket}/backup`, continuousPromise: 'sync' } as const
  const blobMirror = { ...bucket.mirror, bucket: null }
  await using pds = await startPdsOnFile({ backup, blobMirror })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  await post(alice, 'before')
  const answerTo = async (cursor: number): Promise<string> => {
    const socket = new WebSocket(
      `${pds.url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos?cursor=${cursor}`,
    )
    const { promise, resolve } = Promise.withResolvers<string>()
    socket.onclose = ({ reason }) => resolve(reason)
    return promise
  }
  expect(await answerTo(1000)).toBe('FutureCursor')
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())
  await other.begin().promote()
  expect(await answerTo(1000)).not.toContain('FutureCursor')
})

test('a machine that is far behind asks for several segments at a time', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, pds, alice } = server
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())
  const written = Array.from({ length: 20 }, (_, i) => `note${i}`)
  for (const rkey of written) await post(alice, rkey)
  await pds.stop()

  let underWay = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'GET' || !key.includes('/segment-')) return false
    most = Math.max(most, ++underWay)
    // Before the client has it, and asks for another one.
    response.once('finish', () => underWay--)
    if (most >= 3) gate.resolve()
    if (most === 1) return false
    void gate.promise.then(() => bucket.pass(incoming, response))
    return true
  }
  // Once it has seen that there are more, nothing is answered until three are asked for.
  await other.begin().promote()
  bucket.intercept = null
  expect(await notes(other.config, alice)).toEqual(written.toSorted())
})

test('objects that are none of a backup, or too large for one, are told, and stop no machine for good', async () => {
  await using server = await keptInBucket()
  const { bucket, backup, blobMirror, pds, alice } = server
  await post(alice, 'before')
  await pds.stop()
  const other = await machine(backup, blobMirror)
  const lease = 'backup/continuous/lease'
  const kept = bucket.read(lease)
  for (const [bytes, said] of [
    [Buffer.from('{'), 'continuous/lease is damaged'],
    [Buffer.from('{"holder":1}'), 'continuous/lease is damaged'],
    [Buffer.alloc(100_000, 32), 'lease has more than 65536 bytes'],
  ] as const) {
    await bucket.write(lease, bytes)
    expect(await thrownBy(other.begin().promote())).toThrow(said)
  }
  await bucket.write(lease, kept)
  const key = bucket.keys().find((each) => each.endsWith('/key'))!
  const keyBytes = bucket.read(key)
  await bucket.write(key, Buffer.alloc(2 * 1024 ** 2))
  expect(await thrownBy(other.begin().promote())).toThrow(
    'key is not an object of a backup: it has more than 1048576 bytes',
  )
  await bucket.write(key, keyBytes)
  const base = bucket.keys().find((each) => each.includes('/base-'))!
  const baseBytes = bucket.read(base)
  await bucket.write(base, baseBytes.slice(0, 200))
  expect(await thrownBy(other.begin().promote())).toThrow(/base-[\d-]+ is damaged/)
  await bucket.write(base, baseBytes)
  const last = bucket.keys().findLast((each) => each.includes('/segment-'))!
  const next = last.replace(/\d+$/, (number) => String(Number(number) + 1).padStart(number.length, '0'))
  // Without an end: only as much is read as an object can have.
  let sent = 0
  bucket.intercept = (incoming, response, each) => {
    if (incoming.method !== 'GET' || each !== next) return false
    response.writeHead(200)
    const chunk = Buffer.alloc(16 * 1024 ** 2)
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.byteLength
    }
    response.on('drain', more)
    more()
    return true
  }
  expect(await thrownBy(other.begin().promote())).toThrow('has more than 1073741824 bytes')
  expect(sent).toBeLessThan(1.2 * 1024 ** 3)
  bucket.intercept = null
  await bucket.write(next, Buffer.from('of somebody else'))
  expect(await thrownBy(other.begin().promote())).toThrow(/segment-\d+ is damaged/)
  bucket.delete(next)
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(['before'])
})

test('a base comes after many segments too, however soon', async () => {
  const place = newFolder()
  const backup = {
    continuous: place,
    continuousPromise: 'sync',
    continuousLagMs: 60_000,
    continuousBaseSecs: 90,
  } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  const bases = () => objectNames(place, 'base-').length
  const before = bases()
  const written = ['one', 'two', 'three', 'four', 'five']
  for (const rkey of written) await post(alice, rkey)
  await until(() => bases() > before)
  const other = await machine(backup)
  await other.begin().promote()
  expect(await notes(other.config, alice)).toEqual(written.toSorted())
})

test('whoever tells the machine that serves to take over does not make it do so at another time', async () => {
  const place = newFolder()
  const env = {
    SERVICE_BACKUP_CONTINUOUS: place,
    SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    PORT: String(await freePort()),
  }
  const folder = newFolder()
  mkdirSync(folder)
  const promote = { ...env, SERVICE_DATA_DIR: join(folder, 'data') }
  await using server = await startProgram(['dev'], env, folder)
  await isKept(server)
  expect(await runProgram(['promote', '--dev'], promote)).toMatchObject({
    code: 0,
    out: expect.stringContaining('this machine is the one that serves'),
  })
  expect(existsSync(join(folder, 'data', 'holdfast.promote'))).toBe(false)
})

test.skipIf(process.platform !== 'linux')(
  'a process that has the data and follows no machine is named, and nothing is requested for later',
  async () => {
    const place = newFolder()
    await using pds = await startPdsOnFile({ backup: { continuous: place, continuousPromise: 'sync' } })
    await isKept(pds)
    const folder = newFolder()
    mkdirSync(folder)
    const env = { SERVICE_DATA_DIR: join(folder, 'data'), PORT: String(await freePort()) }
    await using server = await startProgram(['dev'], env, folder)
    const promoted = await runProgram(['promote', '--dev'], { ...env, SERVICE_BACKUP_CONTINUOUS: place })
    expect(promoted.code).toBe(1)
    expect(promoted.err).toContain(`is in use by "holdfast dev" (process ${server.pid}), not by "holdfast follow"`)
    expect(existsSync(join(folder, 'data', 'holdfast.promote'))).toBe(false)
  },
)

test('a machine that has no other to follow is not asked to take over', async () => {
  const folder = newFolder()
  mkdirSync(folder)
  const env = { SERVICE_DATA_DIR: join(folder, 'data'), PORT: String(await freePort()) }
  await using _server = await startProgram(['dev'], env, folder)
  expect(await runProgram(['promote', '--dev'], env)).toMatchObject({
    code: 1,
    err: expect.stringContaining('set backup.continuous (SERVICE_BACKUP_CONTINUOUS)'),
  })
  expect(existsSync(join(folder, 'data', 'holdfast.promote'))).toBe(false)
})

test('a machine that follows ends in order when its terminal is closed', async () => {
  const place = newFolder()
  await using pds = await startPdsOnFile({ backup: { continuous: place, continuousPromise: 'sync' } })
  await isKept(pds)
  const folder = newFolder()
  mkdirSync(folder)
  const env = { SERVICE_BACKUP_CONTINUOUS: place, PORT: String(await freePort()) }
  await using follower = beginProgram(['follow', '--dev'], env, folder)
  follower.listening.catch(() => {})
  await until(() => follower.output().includes(' following '))
  follower.signal('SIGHUP')
  expect(await follower.exited).toBe(0)
})

test('the doctor of a machine that follows takes it for none that has to be started, or stopped', async () => {
  const place = newFolder()
  await using pds = await startPdsOnFile({ backup: { continuous: place, continuousPromise: 'sync' } })
  await isKept(pds)
  const dataDir = newFolder()
  const env = { SERVICE_BACKUP_CONTINUOUS: place, SERVICE_DATA_DIR: dataDir, SERVICE_PORT: String(await freePort()) }
  const said = async (check: string) => {
    const { out } = await runProgram(['doctor', '--dev'], env)
    return new RegExp(`^\\S+ +${check} .*$`, 'm').exec(out)![0]
  }
  expect(await said('second-machine')).toMatch(/^FAULT .*continues this server/)
  await using follower = beginProgram(['follow', '--dev'], env, scratch)
  follower.listening.catch(() => {})
  await until(async () => (await said('second-machine')).includes('this one follows it'))
  expect(await said('second-machine')).toMatch(/^ok .*this one follows it, \d+ s behind$/)
  for (const check of ['database', 'server']) expect(await said(check)).toMatch(/^- .*this machine follows another one/)
})

test('a port that is taken is told in words', async () => {
  const place = newFolder()
  await using pds = await startPdsOnFile({ backup: { continuous: place, continuousPromise: 'sync' } })
  await isKept(pds)
  const { port } = new URL(pds.url)
  const env = { SERVICE_BACKUP_CONTINUOUS: place, SERVICE_DATA_DIR: newFolder(), SERVICE_PORT: port }
  const ended = await runProgram(['follow', '--dev'], { ...env, SERVICE_PUBLIC_URL: 'http://localhost:1' })
  expect(ended.code).toBe(1)
  expect(ended.err).toContain(port)
  expect(ended.err).not.toContain('    at ')
})

test('a renewal of the lease that the network delivers after the takeover renews nothing', async () => {
  await using bucket = await startBucket()
  const place = `s3://${bucket.mirror.bucket}/backup`
  const backup = { continuous: place, continuousPromise: 'sync', takeoverSecs: 3 } as const
  const blobMirror = { ...bucket.mirror, bucket: null }
  await using pds = await startPdsOnFile({ backup, blobMirror })
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  await post(alice, 'before')
  const other = await machine(backup, blobMirror)
  await followOnce(other.begin())

  const late = hold(bucket, '/lease')
  await until(late.isThere)
  await other.begin().promote()
  const holder = () => Buffer.from(bucket.read('backup/continuous/lease')).toString()
  const after = holder()
  expect(await late.deliver()).toBe(412)
  expect(holder()).toBe(after)
  await until(async () => (await create(alice, crypto.randomUUID())).status === 503)
  expect(await notes(other.config, alice)).toEqual(['before'])
})

test('under async, a takeover loses what was not sent, and tells relays so', async () => {
  const place = newFolder()
  const backup = { continuous: place, continuousLagMs: 100 } as const
  await using pds = await startPdsOnFile({ backup })
  const alice = await createAccount(pds, 'alice')
  await post(alice, 'sent')
  await until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup?.lagMillis === 0)
  await pds.restart({ backup: { ...backup, continuousLagMs: 60_000 } })
  await post(alice, 'unsent')
  const relay = new Subscriber(pds.url, '?cursor=0')
  const seen = await relay.untilSeen((messages) => messages.some(({ body }) => JSON.stringify(body).includes('unsent')))
  relay.close()
  const highest = Math.max(...seen.map(({ body }) => Number(body['seq'])))

  const dataDir = newFolder()
  const port = await freePort()
  const env = {
    SERVICE_DATA_DIR: dataDir,
    SERVICE_PORT: String(port),
    SERVICE_PUBLIC_URL: 'http://localhost:1',
    SERVICE_BACKUP_CONTINUOUS: place,
  }
  expect(await runProgram(['promote', '--dev'], env)).toMatchObject({ code: 0 })
  const config = testConfig({ dataDir, port, publicUrl: 'http://localhost:1' }, { backup, development: true })
  const keys = () => objectNames(place, 'key').length
  expect(keys()).toBe(1)
  // Whatever comes in between, the server that starts knows that it has to.
  expect(existsSync(join(dataDir, 'holdfast.lost-after'))).toBe(true)
  const app = await startApp(config)
  try {
    const follower = new Subscriber(`http://localhost:${port}`, `?cursor=${highest}`)
    const told = await follower.untilSeen((messages) => messages.some(({ type }) => type === '#sync'))
    follower.close()
    expect(told.map(({ type }) => type)).toEqual(['#identity', '#account', '#sync'])
    expect(told.every(({ body }) => Number(body['seq']) > highest)).toBe(true)
    await until(async () => (await request(`http://localhost:${port}/readyz`)).body.continuousBackup?.lagMillis === 0)
  } finally {
    await app.stop()
  }
  expect(keys()).toBe(1)
  expect(await notes(config, alice)).toEqual(['sent'])
  expect(await faults(config, alice)).toEqual([])
  expect(await thrownBy(pds.restart())).toThrow(/another machine, .*, continues this server/)
})
