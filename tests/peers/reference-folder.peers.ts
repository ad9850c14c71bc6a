/**
 * A reference PDS that has lived is replaced by this server, in place: official clients and a consumer of the firehose
 * follow over the change.
 *
 * `MOVE_ACCOUNTS` and `MOVE_RECORDS` set how much it holds. The old server takes most of the time, to live through it.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import { startApp, type App } from '../../src/app.ts'
import { concurrently } from '../../src/base/concurrently.ts'
import { runCommand } from '../../src/cli.ts'
import { parseReferenceEnv } from '../../src/features/operations/reference-import/reference-env.ts'
import { translateReferenceEnv } from '../../src/features/operations/reference-import/reference-import.ts'
import { thumbprint } from '../../src/protocol/jwk.ts'
import { PASSWORD } from '../support/clients/account.ts'
import { Consumer } from '../support/clients/consumer.ts'
import { basic, request } from '../support/clients/http.ts'
import { belongingsOf, settleIn, verifiedRepo, type Belongings } from '../support/clients/migration.ts'
import { loopbackClientId, newKey, OAuthClient } from '../support/clients/oauth-client.ts'
import { quietTerminal } from '../support/clients/terminal.ts'
import { testConfig } from '../support/servers/config.ts'
import { startPds, type TestPds } from '../support/servers/pds.ts'
import { startUpstream, type Upstream } from '../support/servers/upstream.ts'
import { startPlcServer, type PlcHost } from '../support/servers/plc-server.ts'
import { insert } from '../support/servers/reference-folder.ts'
import { startPostOffice, type PostOffice } from './post-office.ts'
import { PEERS, REFERENCE_ADMIN_PASSWORD, startReference, type Reference } from './reference.ts'

setDefaultTimeout(1_800_000)

const ACCOUNTS = Number(process.env['MOVE_ACCOUNTS'] ?? 100)
const RECORDS = Number(process.env['MOVE_RECORDS'] ?? 20_000)
/** The most that one `applyWrites` may hold. */
const WRITES = 200
const CLIENTS = 8
const APPVIEW_DID = 'did:web:appview.test'
const NOTE = 'com.example.note'
const SCOPE = 'atproto transition:generic'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-moving-'))

let plc: PlcHost
let post: PostOffice
let appview: Upstream
let reference: Reference
let elsewhere: TestPds
let app: App | null = null
let agents: AtpAgent[]
let hanna: AtpAgent
let hannaBefore: Belongings
let hidden: AtpAgent
let resting: AtpAgent
let arriving: string
let consumer: Consumer
let seenBefore: number
let appClient: OAuthClient
let appToken: string
let report: string[]

const times: Record<string, number> = {}
async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  try {
    return await work()
  } finally {
    times[what] = Math.round(performance.now() - began) / 1000
  }
}

async function* numbers(count: number) {
  for (let i = 0; i < count; i++) yield i
}

async function signUp(name: string): Promise<AtpAgent> {
  const agent = new AtpAgent({ service: reference.url })
  await agent.createAccount({ handle: `${name}.peer.test`, email: `${name}@example.com`, password: PASSWORD })
  return agent
}

/** Fills a repository with notes. */
async function write(agent: AtpAgent, count: number): Promise<void> {
  for (let left = count; left > 0; left -= WRITES) {
    const writes = Array.from({ length: Math.min(left, WRITES) }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: NOTE,
      value: { $type: NOTE, text: `note ${left - i}`, createdAt: '2026-01-01T00:00:00.000Z' },
    }))
    await agent.com.atproto.repo.applyWrites({ repo: agent.assertDid, writes: writes as never, validate: false })
  }
}

/** A move to the reference that nobody has finished: its account is there, and its blobs are not. */
async function beginArrival(): Promise<string> {
  const agent = new AtpAgent({ service: elsewhere.url })
  await agent.createAccount({ handle: 'wanda.test', email: 'wanda@example.com', password: PASSWORD })
  await settleIn(agent)
  const { data: description } = await new AtpAgent({ service: reference.url }).com.atproto.server.describeServer()
  const { data: proof } = await agent.com.atproto.server.getServiceAuth({
    aud: description.did,
    lxm: 'com.atproto.server.createAccount',
  })
  const there = new AtpAgent({ service: reference.url })
  const { data: made } = await there.com.atproto.server.createAccount(
    { did: agent.assertDid, handle: 'wanda.peer.test', email: 'wanda@example.com', password: PASSWORD },
    { headers: { authorization: `Bearer ${proof.token}` }, encoding: 'application/json' },
  )
  const { data: car } = await agent.com.atproto.sync.getRepo({ did: agent.assertDid })
  await there.com.atproto.repo.importRepo(car, {
    headers: { authorization: `Bearer ${made.accessJwt}` },
    encoding: 'application/vnd.ipld.car',
  })
  return agent.assertDid
}

/** A session of an app, in the tables of the reference: its consent page is a program that runs in a browser. */
function openAppSession(did: string): void {
  appClient = new OAuthClient({ url: reference.url, clock: { now: Date.now } }, loopbackClientId(SCOPE))
  const key = newKey()
  appClient.key = key
  appToken = `ref-${randomBytes(32).toString('hex')}`
  const accounts = new Database(join(reference.folder, 'account.sqlite'), { strict: true })
  const now = new Date().toISOString()
  insert(accounts, 'token', {
    did,
    tokenId: `tok-${randomBytes(16).toString('hex')}`,
    createdAt: now,
    updatedAt: now,
    expiresAt: now,
    clientId: appClient.clientId,
    clientAuth: JSON.stringify({ method: 'none' }),
    parameters: JSON.stringify({ client_id: appClient.clientId, scope: SCOPE, dpop_jkt: thumbprint(key.jwk) }),
    currentRefreshToken: appToken,
    scope: SCOPE,
  })
  accounts.close()
}

const env = () => ({
  SERVICE_DATA_DIR: join(scratch, 'new'),
  SERVICE_PUBLIC_URL: reference.url,
  SERVICE_PORT: String(reference.port),
  SERVICE_SERVER_DID: 'did:web:localhost',
  SERVICE_AVAILABLE_USER_DOMAINS: 'peer.test',
  SERVICE_PLC_DIRECTORY_URL: plc.url,
  SERVICE_LOG_LEVEL: 'error',
})

async function run(...words: string[]): Promise<[number, string[]]> {
  const lines: string[] = []
  const code = await runCommand(quietTerminal(env(), lines), [...words, '--dev'])
  return [code, lines]
}

beforeAll(async () => {
  ;[plc, post] = await Promise.all([startPlcServer(), startPostOffice()])
  appview = startUpstream()
  const service = { url: appview.url, did: APPVIEW_DID }
  reference = await startReference({
    plcUrl: plc.url,
    smtpUrl: post.url,
    handleDomain: '.peer.test',
    appview: service,
  })
  elsewhere = await startPds({
    plcDirectoryUrl: plc.url,
    rateLimit: { enabled: false },
    appview: { ...service, did: `${APPVIEW_DID}#bsky_appview` },
  })
  consumer = new Consumer(reference.url, { plcUrl: plc.url })
  agents = []
  await timed('life of the old server', async () => {
    const each = Math.floor(RECORDS / ACCOUNTS)
    await concurrently(numbers(ACCOUNTS), CLIENTS, async (i) => {
      const agent = await signUp(`person${i}`)
      await write(agent, each)
      agents.push(agent)
    })
    hanna = await signUp('hanna')
    await settleIn(hanna)
    hannaBefore = await belongingsOf(hanna, plc.url)
    ;[hidden, resting] = [await signUp('hidden-one'), await signUp('resting')]
    arriving = await beginArrival()
    await resting.com.atproto.server.deactivateAccount({})
    const takedown = await request(`${reference.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: basic('admin', REFERENCE_ADMIN_PASSWORD),
      json: {
        subject: { $type: 'com.atproto.admin.defs#repoRef', did: hidden.assertDid },
        takedown: { applied: true, ref: 'mod-7' },
      },
    })
    expect(takedown.status).toBe(200)
  })
  expect(await run('import-reference', reference.folder)).toEqual([
    1,
    [expect.stringContaining('account.sqlite is in use: stop the old server')],
  ])
  await hanna.post({ text: 'the last one there' })
  await reference.stop()
  seenBefore = consumer.events.length
  openAppSession(hanna.assertDid)
  const checked = await timed('check', () => run('import-reference', reference.folder, '--check'))
  expect([checked[0], checked[1].at(-1)]).toEqual([0, expect.anything()])
  const moved = await timed('move', () => run('import-reference', reference.folder))
  report = moved[1]
  expect([moved[0], report.at(-1)]).toEqual([0, expect.stringContaining('The event log continues after')])
  const verified = await timed('verification', () => run('verify', '--quick'))
  expect(verified).toEqual([0, [expect.stringMatching(/, 0 faults$/)]])
  const place = { dataDir: join(scratch, 'new'), port: reference.port, publicUrl: reference.url }
  app = await startApp(
    testConfig(place, {
      serverDid: 'did:web:localhost' as never,
      availableUserDomains: ['peer.test'],
      plcDirectoryUrl: plc.url,
      rateLimit: { enabled: false },
      appview: { ...service, did: `${APPVIEW_DID}#bsky_appview` },
    }),
  )
})
afterAll(async () => {
  await consumer.stop()
  await app?.stop()
  await elsewhere[Symbol.asyncDispose]()
  await reference[Symbol.asyncDispose]()
  await Promise.all([plc, post, appview].map((server) => server[Symbol.asyncDispose]()))
  rmSync(scratch, { recursive: true })
  console.log(JSON.stringify({ accounts: ACCOUNTS, records: RECORDS, seconds: times }))
})

test('everybody moves in, and the report counts them', () => {
  const end = report.find((line) => line.includes('accounts moved in'))
  expect(end).toContain(`${ACCOUNTS + 4} accounts moved in`)
})

test('an account has what it had, under the same head, and reads the same to the libraries of the reference', async () => {
  await hanna.com.atproto.server.getSession()
  const { records, ...rest } = await belongingsOf(hanna, plc.url)
  expect(rest).toEqual({ blobs: hannaBefore.blobs, preferences: hannaBefore.preferences })
  expect(records).toMatchObject(hannaBefore.records)
  await verifiedRepo(agents[0]!, plc.url)
})

test('official clients stay signed in, and write', async () => {
  for (const agent of agents.slice(0, 20)) {
    await agent.post({ text: 'from the new home' })
    expect((await agent.com.atproto.server.getSession()).data.did).toBe(agent.assertDid)
  }
})

test('people sign in with the passwords that they had', async () => {
  const agent = new AtpAgent({ service: reference.url })
  for (let i = 0; i < 2; i++) await agent.login({ identifier: 'hanna.peer.test', password: PASSWORD })
})

test('an app goes on with the refresh token that it had', async () => {
  const { status, body } = await appClient.refresh(appToken)
  expect([status, body.sub, body.scope]).toEqual([200, hanna.assertDid, SCOPE])
})

test('a consumer of the firehose follows over the change without a fault', async () => {
  await hanna.post({ text: 'heard by all' })
  const events = await consumer.until((seen) =>
    seen.some((event) => event.event === 'create' && event.record['text'] === 'heard by all'),
  )
  expect(consumer.faults).toEqual([])
  expect(events.length).toBeGreaterThan(seenBefore)
  const texts = events.flatMap((event) => (event.event === 'create' ? [event.record['text']] : []))
  expect(texts.filter((text) => text === 'the last one there')).toHaveLength(1)
})

test('a consumer that was behind at the change misses nothing', async () => {
  const late = new Consumer(reference.url, { startCursor: 0, plcUrl: plc.url })
  const isLast = (event: (typeof late.events)[number]) =>
    event.event === 'create' && event.record['text'] === 'heard by all'
  const events = await late.until((seen) => seen.some(isLast))
  await late.stop()
  expect(late.faults).toEqual([])
  const written = events.filter(({ event }) => event === 'create').length
  expect(written).toBeGreaterThanOrEqual(Math.floor(RECORDS / ACCOUNTS) * ACCOUNTS)
})

test('takedown, deactivation and a half-finished move are what they were', async () => {
  const statusOf = async (did: string) =>
    (await request(`${reference.url}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)).body.status
  expect(await statusOf(hidden.assertDid)).toBe('takendown')
  expect(await statusOf(resting.assertDid)).toBe('deactivated')
  expect(await statusOf(arriving)).toBe('deactivated')
  const agent = new AtpAgent({ service: reference.url })
  await agent.login({ identifier: arriving, password: PASSWORD })
  const { data } = await agent.com.atproto.server.checkAccountStatus()
  expect([data.expectedBlobs, data.importedBlobs]).toEqual([3, 0])
  expect((await agent.com.atproto.repo.listMissingBlobs()).data.blobs).toHaveLength(3)
})

test('the table of its environment has a line for each variable that the reference reads', () => {
  const source = readFileSync(join(PEERS, 'node_modules/@atproto/pds/dist/config/env.js'), 'utf8')
  const names = [...source.matchAll(/'(PDS_\w+)'/g)].map(([, name]) => name!)
  expect(names.length).toBeGreaterThan(90)
  const { dropped } = translateReferenceEnv(parseReferenceEnv(names.map((name) => `${name}=1`).join('\n')))
  expect(Object.entries(dropped).filter(([, why]) => why === 'unknown to this version')).toEqual([])
})
