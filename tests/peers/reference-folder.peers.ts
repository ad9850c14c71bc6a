/**
 * A reference PDS that has lived is replaced by this server, in place: official clients and a consumer of the firehose
 * follow over the change.
 *
 * `MOVE_ACCOUNTS` and `MOVE_RECORDS` set how much it holds. The old server takes most of the time, to live through it.
 * At the end it prints how long each part took, and the most memory that the command and the new server used.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import type { Event } from '@atproto/sync'
import { concurrently } from '../../src/base/concurrently.ts'
import { parseReferenceEnv } from '../../src/features/operations/reference-import/reference-env.ts'
import { translateReferenceEnv } from '../../src/features/operations/reference-import/reference-import.ts'
import { thumbprint } from '../../src/protocol/jwk.ts'
import { PASSWORD } from '../support/clients/account.ts'
import { Consumer } from '../support/clients/consumer.ts'
import { basic, request } from '../support/clients/http.ts'
import { belongingsOf, finishMove, png, settleIn, verifiedRepo, type Belongings } from '../support/clients/migration.ts'
import { loopbackClientId, newKey, OAuthClient } from '../support/clients/oauth-client.ts'
import { memoryMiB, peakMiBOf } from '../support/process-memory.ts'
import { lastCode } from '../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../support/servers/pds.ts'
import { startUpstream, type Upstream } from '../support/servers/upstream.ts'
import { startPlcServer, type PlcHost } from '../support/servers/plc-server.ts'
import { PROGRAM, startProgram, type RunningServer } from '../support/servers/program.ts'
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
/** How many each person has written. */
const NOTES = Math.floor(RECORDS / ACCOUNTS)
const NEW_POST = 'from the new home'
const SCOPE = 'atproto transition:generic'
const scratch = mkdtempSync(join(tmpdir(), 'holdfast-moving-'))

let plc: PlcHost
let post: PostOffice
let appview: Upstream
let reference: Reference
let elsewhere: TestPds
let home: RunningServer
let agents: AtpAgent[]
let hanna: AtpAgent
let hannaBefore: Belongings
let hidden: AtpAgent
let resting: AtpAgent
let wanda: AtpAgent
let consumer: Consumer
let appClient: OAuthClient
let appToken: string
let report: string[]

const seconds: Record<string, number> = {}
const peakMiB: Record<string, number> = {}
async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  try {
    return await work()
  } finally {
    seconds[what] = Math.round(performance.now() - began) / 1000
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

/** Fills a repository with notes, and a profile with a picture of its own. */
async function write(agent: AtpAgent, seed: number): Promise<void> {
  const { data: picture } = await agent.uploadBlob(png(seed), { encoding: 'image/png' })
  await agent.com.atproto.repo.putRecord({
    repo: agent.assertDid,
    collection: 'app.bsky.actor.profile',
    rkey: 'self',
    record: { $type: 'app.bsky.actor.profile', avatar: picture.blob },
  })
  for (let left = NOTES; left > 0; left -= WRITES) {
    const writes = Array.from({ length: Math.min(left, WRITES) }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: NOTE,
      value: { $type: NOTE, text: `note ${left - i}`, createdAt: '2026-01-01T00:00:00.000Z' },
    }))
    await agent.com.atproto.repo.applyWrites({ repo: agent.assertDid, writes: writes as never, validate: false })
  }
}

/** A move to the reference that nobody has finished: its account is there, and its blobs are not. */
async function beginArrival(): Promise<AtpAgent> {
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
  return agent
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

async function setTakedown(headers: Record<string, string>, takedown: { applied: boolean; ref?: string }) {
  const { status } = await request(`${reference.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    headers,
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: hidden.assertDid }, takedown },
  })
  expect(status).toBe(200)
}

const env = () => ({
  SERVICE_DATA_DIR: join(scratch, 'new'),
  SERVICE_PUBLIC_URL: reference.url,
  SERVICE_PORT: String(reference.port),
  SERVICE_SERVER_DID: 'did:web:localhost',
  SERVICE_AVAILABLE_USER_DOMAINS: 'peer.test',
  SERVICE_PLC_DIRECTORY_URL: plc.url,
  SERVICE_RATE_LIMIT_ENABLED: 'false',
  SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  SERVICE_APPVIEW_URL: appview.url,
  SERVICE_APPVIEW_DID: `${APPVIEW_DID}#bsky_appview`,
})

/** A command, to its end. Returns its exit status and all that it says. */
async function run(...words: string[]): Promise<[number, string[]]> {
  const child = Bun.spawn([...PROGRAM, ...words, '--dev'], {
    cwd: scratch,
    env: { ...env(), HOME: scratch, SERVICE_LOG_LEVEL: 'error' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, out, err, peak] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    peakMiBOf(child),
  ])
  peakMiB[words.filter((word) => word !== reference.folder).join(' ')] = Math.round(peak)
  return [code, (out + err).trimEnd().split('\n')]
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
    await concurrently(numbers(ACCOUNTS), CLIENTS, async (i) => {
      const agent = await signUp(`person${i}`)
      await write(agent, i)
      agents.push(agent)
    })
    hanna = await signUp('hanna')
    await settleIn(hanna)
    hannaBefore = await belongingsOf(hanna, plc.url)
    ;[hidden, resting] = [await signUp('hidden-one'), await signUp('resting')]
    wanda = await beginArrival()
    await resting.com.atproto.server.deactivateAccount({})
    await setTakedown(basic('admin', REFERENCE_ADMIN_PASSWORD), { applied: true, ref: 'mod-7' })
  })
  expect(await run('import-reference', reference.folder)).toEqual([
    1,
    [expect.stringContaining('account.sqlite is in use: stop the old server')],
  ])
  await hanna.post({ text: 'the last one there' })
  await reference.stop()
  openAppSession(hanna.assertDid)
  const [checkCode, checked] = await timed('check', () => run('import-reference', reference.folder, '--check'))
  expect([checkCode, checked]).toEqual([0, expect.arrayContaining([expect.stringMatching(/^ *accounts +\d/)])])
  const moved = await timed('move', () => run('import-reference', reference.folder))
  report = moved[1]
  expect([moved[0], report]).toEqual([
    0,
    expect.arrayContaining([expect.stringContaining('The event log continues after')]),
  ])
  const verified = await timed('verification', () => run('verify', '--quick'))
  expect(verified).toEqual([0, [expect.stringMatching(/, 0 faults$/)]])
  home = await timed('start', () => startProgram(['dev'], env(), scratch))
})
afterAll(async () => {
  await consumer.stop()
  peakMiB['the new server'] = Math.round(memoryMiB(home.pid, 'VmHWM'))
  await home[Symbol.asyncDispose]()
  await elsewhere[Symbol.asyncDispose]()
  await reference[Symbol.asyncDispose]()
  await Promise.all([plc, post, appview].map((server) => server[Symbol.asyncDispose]()))
  rmSync(scratch, { recursive: true })
  const recordsPerMinute = Math.round((RECORDS / seconds['move']!) * 60)
  console.log(JSON.stringify({ accounts: ACCOUNTS, records: RECORDS, recordsPerMinute, seconds, peakMiB }, null, 2))
})

test('everybody moves in, and the report counts them', () => {
  const end = report.find((line) => line.includes('accounts moved in'))
  expect(end).toContain(`${ACCOUNTS + 4} accounts moved in`)
  // The blobs of Hanna, and of everybody else who has one.
  expect(end).toContain(`and ${ACCOUNTS + 3} blobs`)
})

test('an account has what it had, under the same head, and reads the same to the libraries of the reference', async () => {
  await hanna.com.atproto.server.getSession()
  const { records, ...rest } = await belongingsOf(hanna, plc.url)
  expect(rest).toEqual({ blobs: hannaBefore.blobs, preferences: hannaBefore.preferences })
  expect(records).toMatchObject(hannaBefore.records)
  await verifiedRepo(agents[0]!, plc.url)
})

test('official clients stay signed in, and write', async () => {
  await timed('everybody writes', () =>
    concurrently(numbers(ACCOUNTS), CLIENTS, async (i) => {
      const agent = agents[i]!
      await agent.post({ text: NEW_POST })
      expect((await agent.com.atproto.server.getSession()).data.did).toBe(agent.assertDid)
    }),
  )
})

test('everybody exchanges the refresh token that they had, and has the picture that they had', async () => {
  await timed('everybody refreshes', () =>
    concurrently(numbers(ACCOUNTS), CLIENTS, async (i) => {
      const agent = agents[i]!
      const { refreshJwt } = agent.session!
      await agent.sessionManager.refreshSession()
      expect(agent.session!.refreshJwt).not.toBe(refreshJwt)
      const did = agent.assertDid
      const { data: listed } = await agent.com.atproto.sync.listBlobs({ did })
      expect(listed.cids).toHaveLength(1)
      const { headers } = await agent.com.atproto.sync.getBlob({ did, cid: listed.cids[0]! })
      expect(headers['content-type']).toBe('image/png')
    }),
  )
})

test('people sign in with the passwords that they had', async () => {
  const agent = new AtpAgent({ service: reference.url })
  for (let i = 0; i < 2; i++) await agent.login({ identifier: 'hanna.peer.test', password: PASSWORD })
})

test('an app goes on with the refresh token that it had', async () => {
  const { status, body } = await appClient.refresh(appToken)
  expect([status, body.sub, body.scope]).toEqual([200, hanna.assertDid, SCOPE])
})

const says = (text: string) => (event: Event) => event.event === 'create' && event.record['text'] === text

test('a consumer of the firehose follows over the change without a fault', async () => {
  await hanna.post({ text: 'heard by all' })
  await timed('following', async () => {
    expect(await consumer.heard(says('the last one there'))).toHaveLength(1)
    const heard = await consumer.heard(says(NEW_POST), ACCOUNTS)
    expect(new Set(heard.map(({ did }) => did)).size).toBe(ACCOUNTS)
    await consumer.heard(says('heard by all'))
  })
  expect(consumer.faults).toEqual([])
  expect(consumer.events.filter(says('the last one there'))).toHaveLength(1)
})

test('a consumer that was behind at the change misses nothing', async () => {
  const late = new Consumer(reference.url, { startCursor: 0, plcUrl: plc.url })
  const isNote = (event: Event) => event.event === 'create' && event.collection === NOTE
  await timed('catching up', async () => {
    const notes = await late.heard(isNote, NOTES * ACCOUNTS)
    expect(new Set(notes.map((event) => event.event === 'create' && event.uri.toString())).size).toBe(NOTES * ACCOUNTS)
    await late.heard(says(NEW_POST), ACCOUNTS)
    await late.heard(says('heard by all'))
  })
  await late.stop()
  expect(late.faults).toEqual([])
  expect(late.events.filter(isNote)).toHaveLength(NOTES * ACCOUNTS)
})

const statusOf = async ({ assertDid: did }: AtpAgent) =>
  (await request(`${reference.url}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)).body.status

test('takedown, deactivation and a half-finished move are what they were', async () => {
  expect(await statusOf(hidden)).toBe('takendown')
  expect(await statusOf(resting)).toBe('deactivated')
  expect(await statusOf(wanda)).toBe('deactivated')
})

test('a takedown is reversed, and who rested comes back with the session that they had', async () => {
  await setTakedown(basic('admin', ADMIN_TOKEN), { applied: false })
  await resting.com.atproto.server.activateAccount()
  for (const agent of [hidden, resting]) {
    expect(await statusOf(agent)).toBeUndefined()
    await agent.login({ identifier: agent.assertDid, password: PASSWORD })
    await agent.post({ text: 'back again' })
  }
  await consumer.heard(says('back again'), 2)
  expect(consumer.faults).toEqual([])
})

test('a half-finished move is finished', async () => {
  const there = new AtpAgent({ service: reference.url })
  await there.login({ identifier: wanda.assertDid, password: PASSWORD })
  const { data } = await there.com.atproto.server.checkAccountStatus()
  expect([data.expectedBlobs, data.importedBlobs]).toEqual([3, 0])
  await finishMove(wanda, there, () => lastCode(elsewhere, 'wanda@example.com'))
  await there.post({ text: 'there at last' })
  await consumer.heard(says('there at last'))
  expect(consumer.faults).toEqual([])
})

test('the table of its environment has a line for each variable that the reference reads', () => {
  const source = readFileSync(join(PEERS, 'node_modules/@atproto/pds/dist/config/env.js'), 'utf8')
  const names = [...source.matchAll(/'(PDS_\w+)'/g)].map(([, name]) => name!)
  expect(names.length).toBeGreaterThan(90)
  const { dropped } = translateReferenceEnv(parseReferenceEnv(names.map((name) => `${name}=1`).join('\n')))
  expect(Object.entries(dropped).filter(([, why]) => why === 'unknown to this version')).toEqual([])
})
