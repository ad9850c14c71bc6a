/** Threads that share the port: whichever a connection reaches, the service is the same. */
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createAccount } from '../../support/clients/account.ts'
import { basic, bearer, raw, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

/** The system spreads connections at random: one of so many comes to each thread. */
const CONNECTIONS = 24
const collection = 'com.example.note'

const { pds } = useWorldOnFile({
  config: { server: { readers: 2 }, rateLimit: { enabled: false }, spaces: { enabled: true } },
})
const alice = setUp(() => createAccount(pds, 'alice'))

/** Asks over connections of their own. */
const onEach = <T>(ask: (headers: Record<string, string>, index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => ask({ connection: 'close' }, index)))

async function whole(path: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(pds.url + path, { redirect: 'manual', ...init })
  const headers = [...response.headers].filter(([name]) => !/^(date|x-request-id|ratelimit-.*)$/.test(name))
  return JSON.stringify([response.status, headers, Buffer.from(await response.arrayBuffer()).toString('latin1')])
}

const readerRequests = async (): Promise<Record<string, number>> => {
  const text = await (await fetch(`${pds.url}/metrics`)).text()
  return Object.fromEntries(
    Array.from(text.matchAll(/^reader_requests_total\{outcome="(\w+)"\} (\d+)$/gm), ([, outcome, count]) => [
      outcome!,
      Number(count),
    ]),
  )
}

const write = (rkey: string, text: string, headers: Record<string, string> = {}) =>
  alice.call('com.atproto.repo.putRecord', {
    headers,
    json: { repo: alice.did, collection, rkey, record: { $type: collection, text } },
  })

test('every thread answers alike, refusals too', async () => {
  const uploaded = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: randomBytes(100_000),
    headers: { 'content-type': 'application/octet-stream' },
  })
  const { blob } = uploaded.body
  await alice.call('com.atproto.repo.putRecord', {
    json: { repo: alice.did, collection, rkey: 'one', record: { $type: collection, text: 'x'.repeat(5000), blob } },
  })
  const { body: head } = await request(`${pds.url}/xrpc/com.atproto.sync.getLatestCommit?did=${alice.did}`)
  const gone = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
  const record = `repo=${alice.did}&collection=${collection}&rkey=one`
  const before = await readerRequests()
  const paths = [
    `/xrpc/com.atproto.repo.getRecord?${record}`,
    `/xrpc/com.atproto.repo.getRecord?${record}2`,
    '/xrpc/com.atproto.repo.getRecord?repo=nobody',
    `/xrpc/com.atproto.repo.listRecords?repo=${alice.handle}&collection=${collection}&limit=5`,
    `/xrpc/com.atproto.repo.listRecords?repo=${alice.handle}&collection=${collection}&limit=500`,
    `/xrpc/com.atproto.sync.getRecord?did=${alice.did}&collection=${collection}&rkey=one`,
    `/xrpc/com.atproto.sync.getRepo?did=${alice.did}`,
    `/xrpc/com.atproto.sync.getRepo?did=${gone}`,
    `/xrpc/com.atproto.sync.getBlocks?did=${alice.did}&cids=${head.cid}`,
    `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${blob.ref.$link}`,
    `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${head.cid}`,
    `/xrpc/com.atproto.sync.getRepoStatus?did=${alice.did}`,
    '/xrpc/com.atproto.sync.listRepos',
    `/xrpc/com.atproto.identity.resolveHandle?handle=${alice.handle}`,
    '/xrpc/com.atproto.identity.resolveHandle?handle=nobody.test',
    '/xrpc/com.atproto.server.getSession',
    '/xrpc/com.example.unknown',
    '/.well-known/did.json',
    '/nowhere',
    '/',
  ]
  for (const path of paths)
    for (const accepted of ['', 'gzip']) {
      const answers = await onEach((headers) => whole(path, { headers: { ...headers, 'accept-encoding': accepted } }))
      expect([path, new Set(answers).size]).toEqual([path, 1])
    }
  const inits: { method?: string; headers?: Record<string, string> }[] = [
    { method: 'HEAD' },
    { method: 'OPTIONS', headers: { 'access-control-request-headers': 'dpop' } },
    { method: 'POST' },
    { headers: { authorization: 'Bearer nonsense' } },
    { headers: { 'if-none-match': '*' } },
    { headers: { range: 'bytes=1-3' } },
  ]
  for (const init of inits)
    for (const path of [paths[0]!, paths[6]!, paths[9]!]) {
      const answers = await onEach((headers) => whole(path, { ...init, headers: { ...init.headers, ...headers } }))
      expect([path, init, new Set(answers).size]).toEqual([path, init, 1])
    }
  const after = await readerRequests()
  expect(after.answered! - before.answered!).toBeGreaterThan(0)
  expect(after.forwarded! - before.forwarded!).toBeGreaterThan(0)
})

test('no thread gives away what is in a space, and each serves a file exactly while a public record has it', async () => {
  const { body: uploaded } = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from('for members'),
  })
  const cid = uploaded.blob.ref.$link
  const space = `at://${alice.did}/space/com.example.forum/a`
  const place = { repo: alice.did, collection, rkey: 'attached' }
  const record = { text: 'for members', file: uploaded.blob }
  const post = (method: string, json: object) => alice.call(`com.atproto.${method}`, { json })
  const secret = `/xrpc/com.atproto.space.getRecord?${new URLSearchParams({ space, ...place })}`
  const seen = async () => {
    const answers = await onEach(async (headers) => {
      const [file, listed, member, stranger, open] = await Promise.all([
        request(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`, { headers }),
        request(`${pds.url}/xrpc/com.atproto.sync.listBlobs?did=${alice.did}`, { headers }),
        request(pds.url + secret, { headers: { ...headers, ...bearer(alice.accessJwt) } }),
        request(pds.url + secret, { headers }),
        request(`${pds.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams(place)}`, { headers }),
      ])
      const isListed = listed.body.cids.includes(cid)
      return JSON.stringify([file.status, isListed, member.status, stranger.status, open.status])
    })
    return [...new Set(answers)].map((answer) => JSON.parse(answer))
  }
  const before = await readerRequests()
  expect((await post('space.putRecord', { space, ...place, record })).status).toBe(200)
  expect(await seen()).toEqual([[400, false, 200, 401, 400]])
  expect((await post('repo.putRecord', { ...place, record })).status).toBe(200)
  expect(await seen()).toEqual([[200, true, 200, 401, 200]])
  expect((await post('repo.deleteRecord', place)).status).toBe(200)
  expect(await seen()).toEqual([[400, false, 200, 401, 400]])
  expect((await readerRequests()).answered! - before.answered!).toBeGreaterThan(0)
})

test('a request with a bad Host header is refused by every thread', async () => {
  const answers = await onEach(() =>
    raw(pds.url, 'GET /xrpc/_health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n'),
  )
  for (const answer of answers) expect(answer).toStartWith('HTTP/1.1 400')
})

test('whoever was answered reads what was written, over any connection', async () => {
  for (let round = 0; round < 20; round++) {
    const { body } = await write('own', `round ${round}`)
    const read = await onEach((headers) =>
      request(`${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=${collection}&rkey=own`, {
        headers,
      }),
    )
    expect(read.map((answer) => answer.body.cid)).toEqual(read.map(() => body.cid))
  }
})

test('reads stay current while others write without a pause', async () => {
  const bob = await createAccount(pds, 'bob')
  let isOver = false
  const storm = Array.from({ length: 4 }, async (_, writer) => {
    for (let i = 0; !isOver; i++)
      await bob.call('com.atproto.repo.putRecord', {
        json: {
          repo: bob.did,
          collection,
          rkey: `w${writer}`,
          record: { $type: collection, text: `${i}` },
        },
      })
  })
  for (let round = 0; round < 10; round++) {
    const { body } = await write('beside', `round ${round}`)
    const proofs = await onEach((headers) =>
      request(`${pds.url}/xrpc/com.atproto.sync.getLatestCommit?did=${alice.did}`, { headers }),
    )
    expect(proofs.map((answer) => answer.body.rev)).toEqual(proofs.map(() => body.commit.rev))
  }
  isOver = true
  await Promise.all(storm)
})

test('a takedown and a deletion hold at once, over any connection', async () => {
  const record = { repo: alice.did, collection, rkey: 'bad' }
  const { body } = await write('bad', 'something')
  const path = `${pds.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams(record)}`
  const statuses = async (url: string) =>
    new Set((await onEach((headers) => request(url, { headers }))).map((answer) => answer.status))
  expect(await statuses(path)).toEqual(new Set([200]))
  const takeDown = (subject: object, applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: basic('admin', ADMIN_TOKEN),
      json: { subject, takedown: { applied } },
    })
  const strong = { $type: 'com.atproto.repo.strongRef', uri: body.uri, cid: body.cid }
  expect((await takeDown(strong, true)).status).toBe(200)
  expect(await statuses(path)).toEqual(new Set([400]))
  expect((await takeDown(strong, false)).status).toBe(200)
  expect(await statuses(path)).toEqual(new Set([200]))
  expect((await alice.call('com.atproto.repo.deleteRecord', { json: record })).status).toBe(200)
  expect(await statuses(path)).toEqual(new Set([400]))
  const { did } = await createAccount(pds, 'carol')
  const account = { $type: 'com.atproto.admin.defs#repoRef', did }
  const archive = `${pds.url}/xrpc/com.atproto.sync.getRepo?did=${did}`
  expect((await takeDown(account, true)).status).toBe(200)
  expect(await statuses(archive)).toEqual(new Set([400]))
  expect((await takeDown(account, false)).status).toBe(200)
  expect(await statuses(archive)).toEqual(new Set([200]))
})

test('writes and uploads of any size pass through every thread', async () => {
  const cids = await onEach(async (headers, index) => {
    const bytes = randomBytes(index % 2 === 0 ? 1000 : 1_000_000)
    const { status, body } = await alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: bytes,
      headers: { ...headers, 'content-type': 'application/octet-stream' },
    })
    expect([status, body.blob?.size]).toEqual([200, bytes.length])
    return body.blob.ref.$link
  })
  expect(new Set(cids).size).toBe(CONNECTIONS)
  const streamed = await onEach((headers) =>
    alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: new ReadableStream({
        async pull(controller) {
          controller.enqueue(new Uint8Array(300_000).fill(7))
          controller.close()
        },
      }),
      headers: { ...headers, 'content-type': 'application/octet-stream' },
    }),
  )
  expect(new Set(streamed.map(({ status, body }) => `${status} ${body.blob?.size}`))).toEqual(new Set(['200 300000']))
  const written = await onEach((headers, index) => write(`k${index}`, 'short', headers))
  expect(written.map(({ status }) => status)).toEqual(written.map(() => 200))
})

test('a body that is too large is refused, and so is an upload without a credential', async () => {
  const large = await onEach((headers) => write('large', 'x'.repeat(5_000_000), headers))
  expect(new Set(large.map(({ status }) => status))).toEqual(new Set([413]))
  const unknown = await onEach((headers) =>
    request(`${pds.url}/xrpc/com.atproto.repo.uploadBlob`, {
      method: 'POST',
      body: new Uint8Array(1_000_000),
      headers: { ...headers, 'content-type': 'image/png' },
    }),
  )
  expect(new Set(unknown.map(({ status }) => status))).toEqual(new Set([401]))
})

test('subscribers see every event in order, whichever thread has their connection', async () => {
  const subscribers = await Promise.all(Array.from({ length: CONNECTIONS }, () => Subscriber.open(pds.url)))
  for (let i = 0; i < 20; i++) await write('event', `event ${i}`)
  const seen = await Promise.all(subscribers.map((subscriber) => subscriber.until(20)))
  for (const messages of seen)
    expect(messages.map(({ bytes }) => bytes.toString('base64'))).toEqual(
      seen[0]!.map(({ bytes }) => bytes.toString('base64')),
    )
  const listed = async () => (await request(`${pds.url}/v1/admin/firehose`, { headers: bearer(ADMIN_TOKEN) })).status
  expect(await listed()).toBeNumber()
  for (const subscriber of subscribers) subscriber.close()
})

test('a subscriber that is refused learns why from every thread', async () => {
  const closings = await onEach(() => new Subscriber(pds.url, '?cursor=999999999').closed)
  expect(new Set(closings.map(({ reason }) => reason))).toEqual(new Set(['FutureCursor']))
})

test('a client that goes away in the middle of an export leaves nothing behind', async () => {
  for (let i = 0; i < 3; i++) await write(`big${i}`, 'x'.repeat(140_000))
  await onEach(async (headers) => {
    const abort = new AbortController()
    const response = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}`, {
      headers: { ...headers, ...bearer(alice.accessJwt) },
      signal: abort.signal,
    })
    await response.body!.getReader().read()
    abort.abort()
  })
  const running = async () => {
    const text = await (await fetch(`${pds.url}/metrics`)).text()
    return Array.from(text.matchAll(/^(?:repo_exports|reader_forwards)_running (\d+)$/gm), ([, count]) => Number(count))
  }
  // This request for the figures may be one that was forwarded.
  const isOver = ([exports, forwards]: number[]) => exports === 0 && forwards! <= 1
  await until(async () => isOver(await running()))
  expect(isOver(await running())).toBe(true)
})

describe('limits', () => {
  test('an address has one budget at all threads, and refusals are counted once', async () => {
    await using limited = await startPdsOnFile({ server: { readers: 2 }, rateLimit: { globalIpPer5min: 30 } })
    const ask = () =>
      request(`${limited.url}/xrpc/com.atproto.sync.listRepos`, {
        headers: { connection: 'close', 'x-forwarded-for': '203.0.113.7' },
      })
    const answers = []
    for (let i = 0; i < 60; i++) answers.push(await ask())
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(30)
    expect(answers.at(-1)).toMatchObject({ status: 429, body: { error: 'RateLimitExceeded' } })
    expect(answers.slice(0, 3).map(({ headers }) => headers.get('ratelimit-remaining'))).toEqual(['29', '28', '27'])
    limited.clock.advance({ secs: 301 })
    expect((await ask()).status).toBe(200)
  })

  test('a request that fails takes one point, whichever thread it came to', async () => {
    await using limited = await startPdsOnFile({ server: { readers: 2 }, rateLimit: { globalIpPer5min: 40 } })
    const left: number[] = []
    for (let i = 0; i < 20; i++) {
      const { headers } = await request(
        `${limited.url}/xrpc/com.atproto.sync.getRepoStatus?did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa`,
        {
          headers: { connection: 'close', 'x-forwarded-for': '203.0.113.8' },
        },
      )
      left.push(Number(headers.get('ratelimit-remaining')))
    }
    expect(left).toEqual(Array.from({ length: 20 }, (_, i) => 39 - i))
  })
})

test('the server stops with its threads, and starts again on the same port', async () => {
  await using other = await startPdsOnFile({ server: { readers: 1 } })
  const subscriber = await Subscriber.open(other.url)
  await other.stop()
  // Its last checkpoint was not kept from emptying the log.
  expect(existsSync(join(other.dataDir, 'holdfast.db-wal'))).toBe(false)
  await other.restart()
  expect((await subscriber.closed).code).toBe(1001)
  for (let i = 0; i < CONNECTIONS; i++)
    expect(
      (await request(`${other.url}/xrpc/com.atproto.sync.listRepos`, { headers: { connection: 'close' } })).status,
    ).toBe(200)
})
