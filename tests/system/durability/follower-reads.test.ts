/**
 * A machine that follows and answers reads: from one state, which it says the age of, and nothing but public reads; and
 * never beside the server that it becomes.
 */
import { afterAll, expect, test } from 'bun:test'
import { verifyRepoCar } from '@atproto/repo'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { basic, bearer, raw, request, type Answer } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { freePort } from '../../support/ports.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { beginProgram, runProgram, type StartingServer } from '../../support/servers/program.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { COLLECTION, StormAccount } from './storm.ts'
import { thrownBy } from '../../support/thrown.ts'

const MAX_MILLIS = 90_000
const EXPORTS = 40
const WRITERS = 4

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-follower-reads-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let worlds = 0

class Server {
  process: StartingServer | null = null
  /** How its process ended; null while it runs. */
  ended: string | null = null

  constructor(
    readonly url: string,
    readonly folder: string,
    readonly env: Record<string, string>,
  ) {}

  begin(...words: string[]): void {
    const server = beginProgram(words, this.env, this.folder)
    server.listening.catch(() => undefined)
    this.process = server
    this.ended = null
    void server.exited.then((code) => (this.ended = `it ended with ${code}:\n${server.output()}`))
  }

  get(path: string, init: RequestInit = {}): Promise<Answer> {
    return request(this.url + path, { keepalive: false, ...init })
  }

  /** What it says of itself; nothing if it does not answer yet. */
  async state(): Promise<Answer['body']> {
    if (this.ended !== null) throw new Error(this.ended)
    return this.get('/readyz').then(
      ({ body }) => body,
      () => ({}),
    )
  }

  async kill(): Promise<void> {
    this.process?.signal('SIGKILL')
    await this.process?.exited
  }
}

/** Two machines and a folder. The first one serves. */
async function twoMachines(more: Record<string, string> = {}) {
  const folder = join(scratch, String(++worlds))
  const publicUrl = `http://localhost:${await freePort()}`
  const make = async (name: string) => {
    const port = await freePort()
    const own = join(folder, name)
    mkdirSync(own, { recursive: true })
    return new Server(`http://localhost:${port}`, own, {
      PORT: String(port),
      SERVICE_PUBLIC_URL: publicUrl,
      SERVICE_NODE_NAME: name,
      SERVICE_DATA_DIR: join(own, 'data'),
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_SPACES_ENABLED: 'true',
      SERVICE_BACKUP_CONTINUOUS: join(folder, 'bucket'),
      SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
      SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      ...more,
    })
  }
  const [first, second] = [await make('one'), await make('two')]
  first.begin('dev')
  await promises(first)
  return {
    first,
    second,
    async [Symbol.asyncDispose]() {
      await first.kill()
      await second.kill()
    },
  }
}

const promises = (server: Server) => until(async () => (await server.state()).continuousBackup?.promise === 'sync')
const answersReads = (server: Server) => until(async () => (await server.state()).answersReads === true)

async function signUp({ url }: Server, name: string) {
  const json = { handle: `${name}.test`, email: `${name}@example.com`, password: 'a password' }
  const { status, body } = await request(`${url}/xrpc/com.atproto.server.createAccount`, { json })
  expect(status).toBe(200)
  const call = (method: string, json: object) =>
    request(`${url}/xrpc/${method}`, { json, headers: bearer(body.accessJwt), keepalive: false })
  const { body: recommended } = await request(`${url}/xrpc/com.atproto.identity.getRecommendedDidCredentials`, {
    headers: bearer(body.accessJwt),
  })
  return {
    did: body.did as string,
    token: body.accessJwt as string,
    handle: `${name}.test`,
    key: recommended.verificationMethods.atproto as string,
    call,
  }
}

test(
  'it answers public reads as the server does, with their age, and refuses all else in the name of the server',
  async () => {
    await using there = await twoMachines()
    const { first, second } = there
    const alice = await signUp(first, 'alice')
    const note = { repo: alice.did, collection: COLLECTION, rkey: 'one' }
    const record = { $type: COLLECTION, text: 'x'.repeat(3000) }
    const { body: written } = await alice.call('com.atproto.repo.putRecord', { ...note, record })
    const reads = [
      `/xrpc/com.atproto.repo.getRecord?${new URLSearchParams(note)}`,
      `/xrpc/com.atproto.repo.listRecords?repo=${alice.handle}&collection=${COLLECTION}`,
      `/xrpc/com.atproto.repo.describeRepo?repo=${alice.did}`,
      `/xrpc/com.atproto.sync.getRecord?did=${alice.did}&collection=${COLLECTION}&rkey=one`,
      `/xrpc/com.atproto.sync.getRecord?did=${alice.did}&collection=${COLLECTION}&rkey=none`,
      `/xrpc/com.atproto.sync.getBlocks?did=${alice.did}&cids=${written.commit.cid}`,
      `/xrpc/com.atproto.sync.getRepo?did=${alice.did}`,
      `/xrpc/com.atproto.sync.getLatestCommit?did=${alice.did}`,
      `/xrpc/com.atproto.sync.getRepoStatus?did=${alice.did}`,
      `/xrpc/com.atproto.sync.listRepos`,
      `/xrpc/com.atproto.sync.listBlobs?did=${alice.did}`,
      `/xrpc/com.atproto.identity.resolveHandle?handle=${alice.handle}`,
    ]

    for (const path of reads) expect([path, (await first.get(path)).status]).toEqual([path, 200])

    // Without the option, nothing is answered.
    second.begin('follow', '--dev')
    await until(async () => (await second.state()).behindMillis < 1000)
    expect(await second.state()).toMatchObject({ role: 'follower', answersReads: false })
    for (const path of [...reads, '/xrpc/_health', '/']) expect((await second.get(path)).status).toBe(503)
    await second.kill()

    second.begin('follow', '--dev', '--answer-reads')
    await answersReads(second)
    for (const path of reads) {
      const [here, copied] = [await first.get(path), await second.get(path)]
      expect([path, copied.status, copied.body]).toEqual([path, 200, here.body])
      expect([path, here.headers.get('age')]).toEqual([path, null])
      expect(Number(copied.headers.get('age'))).toBeLessThan(30)
      expect(copied.headers.get('access-control-expose-headers')).toContain('Age')
      for (const name of ['content-type', 'etag', 'cache-control', 'access-control-allow-origin'])
        expect([path, name, copied.headers.get(name)]).toEqual([path, name, here.headers.get(name)])
    }
    const named = { headers: { host: new URL(first.env['SERVICE_PUBLIC_URL']!).host } }
    const [own, copied] = [
      await first.get('/.well-known/did.json', named),
      await second.get('/.well-known/did.json', named),
    ]
    expect([copied.status, copied.body]).toEqual([200, own.body])
    const proof = await second.get('/.well-known/atproto-did', { headers: { host: alice.handle } })
    expect([proof.status, proof.body]).toEqual([200, alice.did])
    expect(await second.get('/readyz')).toMatchObject({ status: 503, body: { role: 'follower', fault: null } })
    expect(await second.get('/xrpc/_health')).toMatchObject({ status: 200, body: { role: 'follower' } })
    expect((await second.get('/livez')).status).toBe(200)
    expect((await second.get(reads[0]!, { method: 'OPTIONS' })).status).toBe(204)

    const json = (body: object): RequestInit => ({
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...bearer(alice.token) },
    })
    const refused: [path: string, init?: RequestInit][] = [
      ['/xrpc/com.atproto.repo.createRecord', json({ repo: alice.did, collection: COLLECTION, record })],
      ['/xrpc/com.atproto.repo.uploadBlob', json({})],
      ['/xrpc/com.atproto.server.createSession', json({ identifier: alice.handle, password: 'a password' })],
      [
        '/xrpc/com.atproto.server.createAccount',
        json({ handle: 'bob.test', email: 'b@example.com', password: 'pass' }),
      ],
      ['/xrpc/com.atproto.server.getSession', { headers: bearer(alice.token) }],
      ['/xrpc/com.atproto.sync.requestCrawl', json({ hostname: 'localhost' })],
      ['/xrpc/com.atproto.admin.getAccountInfo?did=x', { headers: basic('admin', ADMIN_TOKEN) }],
      ['/v1/admin/firehose', { headers: bearer(ADMIN_TOKEN) }],
      ['/xrpc/com.atproto.server.describeServer'],
      ['/xrpc/com.example.unknown'],
      ['/oauth/token', json({})],
      ['/account'],
      ['/metrics'],
      ['/', { headers: { accept: 'text/html' } }],
      // With a credential, the answer may be another one.
      [reads[0]!, { headers: bearer(alice.token) }],
      // The server may have it by now.
      [`${reads[0]!}2`],
      ['/xrpc/com.atproto.identity.resolveHandle?handle=nobody.test'],
      ['/xrpc/com.atproto.identity.resolveHandle?handle=someone.example.com'],
    ]
    for (const [path, init] of refused) {
      const { status, headers, body } = await second.get(path, init)
      expect([path, status, JSON.stringify(body)]).toEqual([
        path,
        503,
        expect.stringContaining('follows another one, one'),
      ])
      expect([path, headers.get('retry-after'), headers.get('age')]).toEqual([path, '5', null])
    }
    expect((await second.get('/xrpc/com.example.unknown')).body.error).toBe('ServiceUnavailable')
    const subscriber = new Subscriber(second.url, '?cursor=0')
    expect(await thrownBy(subscriber.opened)).toThrow()
    expect(
      await raw(second.url, 'GET /xrpc/com.atproto.sync.listRepos HTTP/1.1\r\nHost: a b\r\n\r\n', 500),
    ).toStartWith('HTTP/1.1 400')

    // Nothing of this was done, and both machines are the same as before.
    expect((await first.get(reads[9]!)).body.repos).toHaveLength(1)
  },
  MAX_MILLIS,
)

test(
  'what is taken down, deleted or in a space is not read at it either',
  async () => {
    await using there = await twoMachines()
    const { first, second } = there
    const [alice, bob, carol] = [await signUp(first, 'alice'), await signUp(first, 'bob'), await signUp(first, 'carol')]
    const record = { $type: COLLECTION, text: 'a text' }
    for (const { did, call } of [alice, bob, carol])
      for (const rkey of ['one', 'two'])
        expect(
          (await call('com.atproto.repo.putRecord', { repo: did, collection: COLLECTION, rkey, record })).status,
        ).toBe(200)
    const space = `at://${alice.did}/space/com.example.forum/a`
    const secret = { space, repo: alice.did, collection: COLLECTION, rkey: 'secret' }
    expect((await alice.call('com.atproto.space.putRecord', { ...secret, record })).status).toBe(200)
    second.begin('follow', '--dev', '--answer-reads')
    await answersReads(second)

    const statusOf = async (path: string) => (await second.get(`/xrpc/com.atproto.${path}`)).status
    const noteOf = (did: string, rkey: string) => `repo.getRecord?repo=${did}&collection=${COLLECTION}&rkey=${rkey}`
    for (const { did } of [alice, bob, carol]) expect(await statusOf(noteOf(did, 'one'))).toBe(200)
    const takeDown = (subject: object) =>
      request(`${first.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
        headers: basic('admin', ADMIN_TOKEN),
        json: { subject, takedown: { applied: true } },
      })
    const one = await first.get(`/xrpc/com.atproto.${noteOf(alice.did, 'one')}`)
    const strong = { $type: 'com.atproto.repo.strongRef', uri: one.body.uri, cid: one.body.cid }
    expect((await takeDown(strong)).status).toBe(200)
    expect((await takeDown({ $type: 'com.atproto.admin.defs#repoRef', did: bob.did })).status).toBe(200)
    expect((await carol.call('com.atproto.server.deactivateAccount', {})).status).toBe(200)
    const last = await alice.call('com.atproto.repo.putRecord', {
      repo: alice.did,
      collection: COLLECTION,
      rkey: 'last',
      record,
    })
    expect(last.status).toBe(200)
    await until(async () => (await statusOf(noteOf(alice.did, 'last'))) === 200)

    expect(await statusOf(noteOf(alice.did, 'one'))).toBe(503)
    expect(await statusOf(noteOf(alice.did, 'two'))).toBe(200)
    for (const { did, handle } of [bob, carol])
      for (const path of [
        noteOf(did, 'one'),
        `repo.listRecords?repo=${did}&collection=${COLLECTION}`,
        `sync.getRepo?did=${did}`,
        `sync.getRecord?did=${did}&collection=${COLLECTION}&rkey=one`,
        `sync.getLatestCommit?did=${did}`,
        `identity.resolveHandle?handle=${handle}`,
      ])
        expect([path, await statusOf(path)]).toEqual([path, 503])
    const inSpace = new URLSearchParams(secret).toString()
    for (const path of [`space.getRecord?${inSpace}`, noteOf(alice.did, 'secret'), noteOf(space, 'secret')])
      expect([path, await statusOf(path)]).toEqual([path, 503])
    const { body: status } = await second.get(`/xrpc/com.atproto.sync.getRepoStatus?did=${bob.did}`)
    expect(status).toMatchObject({ active: false, status: 'takendown' })
  },
  MAX_MILLIS,
)

test(
  'an address has the same budget as at the server, whatever the outcome of its requests',
  async () => {
    await using there = await twoMachines({
      SERVICE_RATE_LIMIT_ENABLED: 'true',
      SERVICE_RATE_LIMIT_GLOBAL_IP_PER_5MIN: '40',
    })
    const { first, second } = there
    await signUp(first, 'alice')
    second.begin('follow', '--dev', '--answer-reads')
    await answersReads(second)
    const ask = (query: string) =>
      second.get(`/xrpc/com.atproto.sync.listRepos${query}`, { headers: { 'x-forwarded-for': '203.0.113.7' } })
    const answers = []
    for (let i = 0; i < 50; i++) answers.push(await ask(i % 2 === 0 ? '' : '?limit=none'))
    expect(answers.slice(0, 40).map(({ status }) => status)).toEqual(
      Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 200 : 503)),
    )
    for (const { status, body, headers } of answers.slice(40)) {
      expect([status, body.error]).toEqual([429, 'RateLimitExceeded'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(5)
    }
  },
  MAX_MILLIS,
)

test(
  'blobs in a bucket are read at it while a public record has them; those in a folder are left to the server',
  async () => {
    await using bucket = await startBucket()
    const { primary } = bucket
    for (const [env, expected] of [
      [
        {
          SERVICE_BLOBS_STORE: 's3',
          SERVICE_BLOBS_S3_BUCKET: primary.s3Bucket,
          SERVICE_BLOBS_S3_ENDPOINT: primary.s3Endpoint,
          SERVICE_BLOBS_S3_ACCESS_KEY_ID: primary.s3AccessKeyId,
          SERVICE_BLOBS_S3_SECRET_ACCESS_KEY: primary.s3SecretAccessKey.reveal(),
          SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
        },
        200,
      ],
      [{}, 503],
    ] as const) {
      await using there = await twoMachines(env)
      const { first, second } = there
      const { did, token, call } = await signUp(first, 'alice')
      const { body } = await request(`${first.url}/xrpc/com.atproto.repo.uploadBlob`, {
        method: 'POST',
        body: 'a text in a blob',
        headers: { 'content-type': 'text/plain', ...bearer(token) },
      })
      const place = { repo: did, collection: COLLECTION, rkey: 'one' }
      await call('com.atproto.repo.putRecord', { ...place, record: { $type: COLLECTION, blob: body.blob } })
      second.begin('follow', '--dev', '--answer-reads')
      await answersReads(second)
      const path = `/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${body.blob.ref.$link}`
      expect(await first.get(path)).toMatchObject({ status: 200, body: 'a text in a blob' })
      const { status, body: blob, headers } = await second.get(path)
      expect([status, blob === 'a text in a blob', headers.has('age')]).toEqual([
        expected,
        expected === 200,
        expected === 200,
      ])
      await call('com.atproto.repo.deleteRecord', place)
      await until(async () => (await second.get(path)).status === 503)
    }
  },
  MAX_MILLIS,
)

/** Exports the repository again and again. Returns how often that succeeded. */
async function exportOften(
  { url }: Server,
  { did, key }: { did: string; key: string },
  isEnough: (exports: number) => boolean,
): Promise<number> {
  let exports = 0
  let rev = ''
  while (!isEnough(exports)) {
    let bytes: Uint8Array
    try {
      const response = await fetch(`${url}/xrpc/com.atproto.sync.getRepo?did=${did}`, { keepalive: false })
      if (response.status !== 200) {
        expect(response.status).toBe(503)
        await response.arrayBuffer()
        await eventLoopTurns(5)
        continue
      }
      expect(response.headers.get('age')).not.toBeNull()
      bytes = new Uint8Array(await response.arrayBuffer())
    } catch (error) {
      // It was killed.
      if (error instanceof Error && /unable to connect|socket|closed|reset/i.test(error.message)) {
        await eventLoopTurns(5)
        continue
      }
      throw error
    }
    const { commit } = await verifyRepoCar(bytes, did, key)
    expect(commit.rev >= rev).toBe(true)
    rev = commit.rev
    exports++
  }
  return exports
}

test(
  'every export is one signed state while the server writes; also if the machine is killed again and again, or makes a new copy',
  async () => {
    await using there = await twoMachines()
    const { first, second } = there
    const account = await StormAccount.create(first.url, 'storm')
    account.isPatient = true
    const { body } = await request(`${first.url}/xrpc/com.atproto.identity.getRecommendedDidCredentials`, {
      headers: bearer(account.token),
    })
    const reader = { did: account.did, key: body.verificationMethods.atproto as string }
    let isOver = false
    const storm = () =>
      Promise.all(
        Array.from({ length: WRITERS }, (_, writer) => account.writeUntilGone(first.url, writer, () => isOver)),
      )
    let writing = storm()
    await until(() => account.commits.length > 200)
    second.begin('follow', '--dev', '--answer-reads')
    await answersReads(second)
    await exportOften(second, reader, (exports) => exports === EXPORTS)

    // The copy is in the middle of segments when it starts again.
    for (let kill = 0; kill < 5; kill++) {
      const before = account.commits.length
      let isKilled = false
      const reading = exportOften(second, reader, () => isKilled)
      await until(() => account.commits.length > before + 30)
      await second.kill()
      isKilled = true
      await reading
      second.begin('follow', '--dev', '--answer-reads')
      await exportOften(second, reader, (exports) => exports > 0)
    }
    expect(second.process!.output()).not.toContain('"level":"error"')

    // Without what it noted of its chain, the server begins another one.
    isOver = true
    await writing
    isOver = false
    let isCopied = false
    const reading = exportOften(second, reader, () => isCopied)
    first.process!.signal('SIGTERM')
    await first.process!.exited
    rmSync(join(first.folder, 'data', 'continuous'), { recursive: true })
    first.begin('dev')
    await promises(first)
    writing = storm()
    const before = account.commits.length
    await until(() => account.commits.length > before + 50)
    const { body: newest } = await first.get(`/xrpc/com.atproto.sync.getLatestCommit?did=${account.did}`)
    await until(async () => {
      const { status, body } = await second.get(`/xrpc/com.atproto.sync.getLatestCommit?did=${account.did}`)
      return status === 200 && body.rev >= newest.rev
    })
    isCopied = true
    expect(await reading).toBeGreaterThan(0)
    isOver = true
    await writing
  },
  MAX_MILLIS,
)

test.each(['promote', 'kill'])(
  'when it takes over (%s), its reads end before the server answers on the same port',
  async (reason) => {
    await using there = await twoMachines({ SERVICE_BACKUP_TAKEOVER_SECS: '3' })
    const { first, second } = there
    const alice = await signUp(first, 'alice')
    const write = (server: Server, rkey: string) =>
      request(`${server.url}/xrpc/com.atproto.repo.putRecord`, {
        json: { repo: alice.did, collection: COLLECTION, rkey, record: { $type: COLLECTION, text: rkey } },
        headers: bearer(alice.token),
        keepalive: false,
      })
    expect((await write(first, 'before')).status).toBe(200)
    second.begin('follow', '--dev', '--answer-reads')
    await answersReads(second)

    const path = `/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=${COLLECTION}&rkey=before`
    /** Who answered, in order. */
    const who: ('copy' | 'nobody' | 'server')[] = []
    let isOver = false
    const asking = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const asked = who.length
          const answer = await second.get(path).catch(() => null)
          const isServers = answer?.status === 200 && answer.headers.get('age') === null
          // One that was asked before may be answered late.
          if (who.slice(0, asked).includes('server')) expect(isServers).toBe(true)
          who.push(isServers ? 'server' : answer?.status === 200 ? 'copy' : 'nobody')
          if (answer === null) await eventLoopTurns(5)
        }
      }),
    )
    await until(() => who.filter((each) => each === 'copy').length > 20)
    if (reason === 'kill') await first.kill()
    else expect(await runProgram(['promote', '--dev'], second.env)).toMatchObject({ code: 0 })
    await second.process!.listening
    await until(async () => (await write(second, 'after')).status === 200)
    await until(() => who.filter((each) => each === 'server').length > 20)
    isOver = true
    await asking
    expect(await second.state()).toMatchObject({ role: 'serving' })
    const { body } = await second.get(`/xrpc/com.atproto.repo.listRecords?repo=${alice.did}&collection=${COLLECTION}`)
    expect(body.records).toHaveLength(2)
  },
  MAX_MILLIS,
)
