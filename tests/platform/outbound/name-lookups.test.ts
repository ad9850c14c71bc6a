import { expect, test } from 'bun:test'
import { Bucket } from '../../../src/platform/network/bucket.ts'
import { Secret } from '../../../src/base/secret.ts'
import { encodeObject } from '../../../src/protocol/jws.ts'
import { LookupsFull, systemResolver, type ResolverOptions } from '../../../src/platform/network/resolver.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, raw } from '../../support/clients/http.ts'
import { startNameServer } from '../../support/servers/name-server.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

/** As many as the server looks up at one time, and lets wait. */
const MAX_QUESTIONS = 128
const MAX_WAITING = 256
const MAX_WAITING_FOR_SYSTEM = 16
/** And of one client. */
const MAX_OF_CLIENT = 32
/** Look-ups of these tests end when the name server answers. */
const timeoutMillis = 25_000

const names = setUp(startNameServer)

const resolverFor = (options: ResolverOptions = {}) =>
  systemResolver({ servers: [names.address], hostsPath: '/nowhere', timeoutMillis, ...options })

/** Everything that a person does in a minute. */
async function ordinaryWork(pds: TestPds, account: TestAccount): Promise<number[]> {
  const record = { $type: 'app.bsky.feed.post', text: 'Hello!', createdAt: '2026-01-01T00:00:00.000Z' }
  const made = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection: 'app.bsky.feed.post', record },
  })
  const rkey = String(made.body.uri).split('/').at(-1)!
  const blob = await account.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: crypto.getRandomValues(new Uint8Array(100_000)),
    headers: { 'content-type': 'application/octet-stream' },
  })
  const read = await xrpc(
    pds,
    `com.atproto.repo.getRecord?${new URLSearchParams({ repo: account.did, collection: 'app.bsky.feed.post', rkey })}`,
  )
  await logIn(pds, account, PASSWORD)
  return [made.status, blob.status, read.status]
}

const forgedToken = (iss: string, lxm: string) =>
  `${encodeObject({ typ: 'JWT', alg: 'ES256K' })}.${encodeObject({ iss, aud: 'did:web:localhost', exp: 4_000_000_000, lxm })}.${Buffer.alloc(64, 1).toString('base64url')}`

interface Flood {
  path: (index: number) => string
  headers?: (index: number) => Record<string, string>
  body?: (index: number) => string
  /** What a request without room is told. */
  refusal?: string
}

const floods: Record<string, Flood> = {
  'issuers of forged service tokens': {
    path: () => '/xrpc/com.atproto.server.createAccount',
    headers: (index) => bearer(forgedToken(`did:web:x${index}.example.com`, 'com.atproto.server.createAccount')),
    body: () => JSON.stringify({ handle: 'mallory.test' }),
  },
  handles: { path: (index) => `/xrpc/com.atproto.identity.resolveHandle?handle=x${index}.example.com` },
  'identities to refresh': {
    path: () => '/xrpc/com.atproto.identity.refreshIdentity',
    body: (index) => JSON.stringify({ identifier: `did:web:x${index}.example.com` }),
  },
  clients: {
    path: () => '/oauth/par',
    headers: () => ({ 'content-type': 'application/x-www-form-urlencoded' }),
    body: (index) =>
      String(new URLSearchParams({ client_id: `https://x${index}.example.com/client.json`, response_type: 'code' })),
    refusal: 'temporarily_unavailable',
  },
}

/** Over a connection of its own: the runtime's client sends no more than 256 requests at a time. */
function send(
  { url }: TestPds,
  { path, headers, body }: Flood,
  index: number,
  client = `2001:db8:0:${index.toString(16)}::1`,
): Promise<string> {
  const text = body?.(index) ?? ''
  const lines = {
    host: new URL(url).host,
    connection: 'close',
    'x-forwarded-for': client,
    ...(body ? { 'content-type': 'application/json', 'content-length': String(text.length) } : {}),
    ...headers?.(index),
  }
  const head = [
    `${body ? 'POST' : 'GET'} ${path(index)} HTTP/1.1`,
    ...Object.entries(lines).map(([name, value]) => `${name}: ${value}`),
  ]
  return raw(url, `${head.join('\r\n')}\r\n\r\n${text}`, timeoutMillis)
}

for (const [what, flood] of Object.entries(floods)) {
  test(`while the names of 500 ${what} are looked up in silence, everything else goes on, and what has no room is refused at once`, async () => {
    await using pds = await startPds({ rateLimit: { enabled: false } }, { resolver: resolverFor() })
    const alice = await createAccount(pds, 'alice')
    names.setSilent(true)
    const answers: string[] = []
    const asked = Array.from({ length: 500 }, async (_, index) => void answers.push(await send(pds, flood, index)))
    await until(() => answers.length === 500 - MAX_QUESTIONS - MAX_WAITING)
    expect(await ordinaryWork(pds, alice)).toEqual([200, 200, 200])
    expect(answers).toHaveLength(500 - MAX_QUESTIONS - MAX_WAITING)
    for (const answer of answers) {
      expect(answer).toStartWith('HTTP/1.1 503 ')
      expect(answer).toContain('Retry-After: 3\r\n')
      expect(answer).toContain(`"error":"${flood.refusal ?? 'ServiceUnavailable'}"`)
    }
    names.setSilent(false)
    await Promise.all(asked)
    expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 503 '))).toHaveLength(
      500 - MAX_QUESTIONS - MAX_WAITING,
    )
  })
}

test('one client takes a part of the look-ups, whatever it asks and wherever in its network, and the others have theirs', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false } }, { resolver: resolverFor() })
  names.setSilent(true)
  const kinds = Object.values(floods)
  const answers: string[] = []
  const asked = Array.from(
    { length: 200 },
    async (_, index) =>
      void answers.push(await send(pds, kinds[index % kinds.length]!, index, `2001:db8:1:1::${index.toString(16)}`)),
  )
  await until(() => answers.length === 200 - MAX_OF_CLIENT)
  for (const answer of answers) expect(answer).toStartWith('HTTP/1.1 503 ')
  const ofOthers = Array.from({ length: MAX_QUESTIONS }, (_, index) => send(pds, floods['handles']!, 1000 + index))
  await until(() => names.waiting >= MAX_QUESTIONS)
  names.setSilent(false)
  for (const answer of await Promise.all(ofOthers)) expect(answer).not.toStartWith('HTTP/1.1 503 ')
  await Promise.all(asked)
})

test('addresses that fill all that may wait do not keep out another, whose turn comes before most of theirs', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false } }, { resolver: resolverFor() })
  names.setSilent(true)
  const flood = floods['handles']!
  const busy = MAX_QUESTIONS + MAX_WAITING
  const answers: string[] = []
  const asked = Array.from(
    { length: busy },
    async (_, index) => void answers.push(await send(pds, flood, index, `198.51.${index % 12}.1`)),
  )
  await until(() => names.waiting === MAX_QUESTIONS)
  const asker = send(pds, flood, busy, '203.0.113.1')
  // One of the others makes room for it.
  await until(() => answers.length === 1)
  expect(answers[0]).toStartWith('HTTP/1.1 503 ')
  const before = names.questions.length
  names.setSilent(false)
  expect(await asker).not.toStartWith('HTTP/1.1 503 ')
  await Promise.all(asked)
  expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 503 '))).toHaveLength(1)
  const later = [...new Set(names.questions.slice(before))]
  expect(later.findIndex((question) => question.includes(flood.path(busy).split('=').at(-1)!))).toBeLessThan(2 * 13)
})

test('a service token of somebody who has no account here makes nothing go out', async () => {
  await using pds = await startPds({}, { resolver: resolverFor() })
  const before = names.questions.length
  const token = forgedToken('did:web:nobody.example.com', 'com.atproto.repo.uploadBlob')
  const answer = await xrpc(pds, 'com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'x',
    headers: { ...bearer(token), 'content-type': 'text/plain' },
  })
  expect([answer.status, answer.body.error]).toEqual([403, 'AccountNotFound'])
  expect(names.questions.length).toBe(before)
})

test('a handle is taken as soon as its record is there, however often it was asked for before', async () => {
  await using pds = await startPds({ rateLimit: { enabled: false } }, { resolver: resolverFor() })
  const alice = await createAccount(pds, 'alice')
  const take = () => alice.call('com.atproto.identity.updateHandle', { json: { handle: 'alice.example.com' } })
  names.set('_atproto.alice.example.com', 'A', '192.0.2.1')
  expect((await take()).body.message).toBe('External handle did not resolve to DID')
  expect((await take()).status).toBe(400)
  names.set('_atproto.alice.example.com', 'TXT', `did=${alice.did}`)
  expect((await take()).status).toBe(200)
  expect((await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=alice.example.com')).body.did).toBe(alice.did)
})

test('a host has the addresses of both families, and an absence is not kept', async () => {
  const resolver = resolverFor()
  expect(await resolver.addresses('both.example.org')).toEqual([])
  names.set('both.example.org', 'A', '192.0.2.7', '192.0.2.8')
  names.set('both.example.org', 'AAAA', '2001:db8::7')
  expect(await resolver.addresses('both.example.org')).toEqual(['192.0.2.7', '192.0.2.8', '2001:db8::7'])
  names.set('both.example.org', 'A', '192.0.2.9')
  expect(await resolver.addresses('both.example.org')).toContain('192.0.2.7')
  expect(await resolver.addresses('both.example.org', { fresh: true })).toEqual(['192.0.2.9', '2001:db8::7'])
  expect(await resolver.addresses('both.example.org')).toContain('192.0.2.9')
})

test('those who ask for one host share a look-up', async () => {
  const resolver = resolverFor()
  names.set('shared.example.org', 'A', '192.0.2.7')
  const before = names.questions.length
  await Promise.all(Array.from({ length: 50 }, () => resolver.addresses('shared.example.org')))
  expect(names.questions.slice(before).sort()).toEqual(['A shared.example.org', 'AAAA shared.example.org'])
})

test('a name that nobody answered for is not asked for again at once', async () => {
  const resolver = resolverFor({ timeoutMillis: 1000 })
  names.setSilent(true)
  expect(await thrownBy(resolver.texts('silent.example.org'))).toThrow('silent.example.org')
  names.setSilent(false)
  const before = names.questions.length
  expect(await thrownBy(resolver.texts('silent.example.org'))).toThrow('a moment ago')
  expect(await resolver.texts('other.example.org')).toEqual([])
  expect(names.questions.slice(before)).toEqual(['TXT other.example.org'])
})

test('what waited for its turn too long is not put at all', async () => {
  const resolver = resolverFor({ timeoutMillis: 300 })
  names.setSilent(true)
  const before = names.questions.length
  const asked = Array.from({ length: MAX_QUESTIONS + MAX_WAITING + 1 }, (_, index) =>
    resolver.texts(`t${index}.example.org`).catch((error: unknown) => error),
  )
  const outcomes = await Promise.all(asked)
  names.setSilent(false)
  expect(outcomes.filter((outcome) => outcome instanceof LookupsFull)).toHaveLength(MAX_WAITING + 1)
  expect(new Set(names.questions.slice(before)).size).toBe(MAX_QUESTIONS)
  expect(await resolver.texts('afterwards.example.org')).toEqual([])
})

test('hosts that only the system may know, and for which there is no room, are refused as all others are', async () => {
  const resolver = resolverFor({ asksSystem: true })
  names.setSilent(true)
  // The system reads these as addresses, or refuses them, without asking anybody.
  const asked = Array.from({ length: 100 }, (_, index) =>
    resolver.addresses(`127.${index}`).catch((error: unknown) => error),
  )
  await until(() => names.waiting === 200)
  names.setSilent(false)
  const refused = (await Promise.all(asked)).filter((outcome) => outcome instanceof Error)
  expect(refused).toHaveLength(100 - 1 - MAX_WAITING_FOR_SYSTEM)
  for (const error of refused) expect(error).toBeInstanceOf(LookupsFull)
})

test('localhost is this machine without asking anybody', async () => {
  const before = names.questions.length
  expect(await resolverFor().addresses('localhost')).toEqual(['127.0.0.1', '::1'])
  expect(await resolverFor().addresses('pds.localhost')).toEqual(['127.0.0.1', '::1'])
  expect(await resolverFor().addresses('192.0.2.1')).toEqual(['192.0.2.1'])
  expect(names.questions.length).toBe(before)
})

test('a bucket is looked up in the same way, and told its own name', async () => {
  const asked: string[] = []
  await using store = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      asked.push(request.headers.get('host')!)
      return new Response('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
    },
  })
  const endpoint = `http://s3.localhost:${store.port}`
  const bucket = new Bucket({
    bucket: 'blobs',
    endpoint,
    region: 'auto',
    accessKeyId: 'key',
    secretAccessKey: new Secret('secret'),
    forcePathStyle: false,
  })
  expect(await Array.fromAsync(bucket.list(''))).toEqual([])
  expect(asked).toEqual([`blobs.s3.localhost:${store.port}`])
})

test('a name that DNS cannot have is not looked up', async () => {
  const resolver = resolverFor()
  const asked = names.questions.length
  const long = `${'a.'.repeat(130)}example.com`
  expect(await resolver.addresses(long)).toEqual([])
  expect(await resolver.texts(`_atproto.${long}`)).toEqual([])
  expect(names.questions.length).toBe(asked)
})

test('of a host with many addresses, the first ones are kept', async () => {
  const addresses = Array.from({ length: 30 }, (_, index) => `203.0.113.${index}`)
  names.set('many.example.com', 'A', ...addresses)
  expect(await resolverFor().addresses('many.example.com')).toHaveLength(16)
})
