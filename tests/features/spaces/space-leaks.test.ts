/**
 * What is written in spaces is searched for wherever the server says or keeps anything: words that occur in a text, in
 * a file, in keys, in names of types and in the identity of an authority, and the CIDs of what was written.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../../src/base/secret.ts'
import { runCommand } from '../../../src/cli.ts'
import { features } from '../../../src/features.ts'
import { tablesOf } from '../../../src/platform/database/catalog.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { DelegateBrowser } from '../../support/clients/delegate.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { registerAgent, withAgents, type RegisteredAgent } from '../../support/clients/registered-agent.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { spaceApp, type SpaceApp } from '../../support/clients/space-app.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { Sentinels } from '../../support/sentinels.ts'
import { startCollector, type Collector } from '../../support/servers/collector.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import type { Table } from '../../support/tables.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

// Every page and every table is looked through.
setDefaultTimeout(60_000)

/** In keys, types, collections and the authority: a stranger may ask for these, and read them in his own words. */
const NAME = 'zqnamedinspaces'
/** In texts and files. */
const TEXT = 'zqwritteninspaces'
const COLLECTION = `test.${NAME}.note`
const AUTHORITY = `did:web:${NAME}.example`
const everything = 'space:*?authority=*&collection=*'
const spacesOn = { spaces: { enabled: true } }

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-leaks-'))
afterAll(() => rmSync(scratch, { recursive: true }))

/** Writes, reads and fails in spaces, in all ways. Adds what nothing else may contain. */
async function beBusy(pds: TestPds, alice: TestAccount, app: SpaceApp, words: Sentinels): Promise<{ cid: string }> {
  words.add(NAME, TEXT)
  const { body: uploaded } = await app.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(`a file ${TEXT}`),
  })
  const place = { space: `at://${AUTHORITY}/space/test.${NAME}.space/${NAME}`, repo: alice.did }
  const record = { text: TEXT, more: [`about ${TEXT}`], file: uploaded.blob }
  const at = (rkey: string) => ({ ...place, collection: COLLECTION, rkey })
  const created = await app.post('createRecord', { ...at(NAME), record })
  const put = await app.post('putRecord', { ...at(`${NAME}2`), record: { text: TEXT } })
  const batch = await app.post('applyWrites', {
    ...place,
    writes: ['3', '4'].map((n) => ({
      $type: 'com.atproto.space.applyWrites#create',
      collection: COLLECTION,
      rkey: NAME + n,
      value: { text: TEXT, n: Number(n) },
    })),
  })
  expect([created.status, put.status, batch.status]).toEqual([200, 200, 200])
  const cids = [created.body.cid, put.body.cid, ...batch.body.results.map((one: { cid: string }) => one.cid)]
  words.add(...cids)
  await app.post('deleteRecord', at(`${NAME}4`))
  for (const [method, params] of [
    ['getRecord', at(NAME)],
    ['listRecords', place],
    ['listRepoOps', place],
    ['getLatestCommit', place],
    ['listBlobs', place],
    ['getBlob', { ...place, cid: uploaded.blob.ref.$link }],
    ['listSpaces', { did: AUTHORITY }],
  ] as const)
    expect([method, (await app.get(method, params)).status]).toEqual([method, 200])

  const narrow = await spaceApp(pds, alice, 'space:test.other.space?collection=*')
  const wrong: [SpaceApp, string, object][] = [
    [app, 'createRecord', { ...at(NAME), record }],
    [app, 'createRecord', { ...at(`${NAME}5`), record: { text: TEXT, n: 1.5 } }],
    [app, 'createRecord', { ...at(`${NAME}5`), record: { $type: NAME } }],
    [app, 'createRecord', { ...at(`${NAME}5`), validate: true, record }],
    [app, 'createRecord', { ...at(`${NAME}/5`), record }],
    [app, 'createRecord', { ...at(NAME), space: `${place.space}/${TEXT}`, record }],
    [app, 'createRecord', { ...at(NAME), space: `${place.space}${'x'.repeat(2000)}`, record }],
    [app, 'createRecord', { ...at(NAME), record: { text: TEXT.repeat(100_000) } }],
    [app, 'putRecord', { ...at(NAME), repo: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', record }],
    [app, 'applyWrites', { ...place, writes: [{ $type: NAME }] }],
    [narrow, 'createRecord', { ...at(NAME), record }],
    [narrow, 'deleteRecord', at(NAME)],
  ]
  for (const [by, method, json] of wrong) expect((await by.post(method, json)).status).toBeGreaterThanOrEqual(400)
  for (const cursor of [NAME, `${place.space}/${AUTHORITY}/${COLLECTION}/x`])
    expect((await app.get('listRecords', { ...place, cursor })).status).toBe(400)
  expect((await narrow.get('getRecord', at(NAME))).status).toBe(403)
  return { cid: uploaded.blob.ref.$link }
}

/** A service that keeps all that it is sent, as text. */
function startRecorder() {
  const received: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(incoming) {
      const { method, url, headers } = incoming
      received.push(JSON.stringify([method, url, Object.fromEntries(headers), await incoming.text()]))
      return Response.json({})
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, received, [Symbol.asyncDispose]: () => server.stop(true) }
}

const endpoints = features.flatMap(({ routes = [] }) => routes)
const queries = endpoints.flatMap((endpoint) => (endpoint.kind === 'query' ? [endpoint.nsid] : []))
const getRoutes = endpoints.flatMap((endpoint) =>
  endpoint.kind === 'route' && endpoint.method === 'GET' ? [endpoint.path] : [],
)

describe('in a busy world', () => {
  const collector: Collector = setUp(startCollector)
  const recorder = setUp(startRecorder)
  const { pds, author } = useWorld({
    author: true,
    config: () => ({
      ...spacesOn,
      development: false,
      rateLimit: { enabled: false },
      signup: { requireConfirmedAddress: false },
      agentAuth: { ...withAgents, grantedScopes: ['atproto', 'transition:generic', everything] },
      telemetry: { enabled: true, otlpEndpoint: collector.url },
      appview: { url: recorder.url, did: 'did:web:appview.test#bsky_appview' },
      integrity: { roundSecs: 3600, cpuPercent: 100 },
      alerts: {
        mailTo: ['operator@example.org'],
        webhookUrl: `${recorder.url}/hook`,
        webhookSecret: new Secret(`whsec_${Buffer.alloc(32, 7).toString('base64')}`),
        diskFreeBytes: Number.MAX_SAFE_INTEGER,
      },
    }),
  })
  const words = new Sentinels()
  let alice: TestAccount
  let others: Record<string, SpaceApp['call']>
  let blobCid: string
  let relay: Subscriber

  beforeAll(async () => {
    pds.dns.setTexts(`_lexicon.${NAME}.test`, `did=${author.did}`)
    relay = new Subscriber(pds.url, '?cursor=0')
    await relay.opened
    alice = await createAccount(pds, 'alice')
    const app = await spaceApp(
      pds,
      alice,
      everything,
      'blob:*/*',
      'repo:*',
      'rpc:*?aud=did:web:appview.test%23bsky_appview',
    )
    blobCid = (await beBusy(pds, alice, app, words)).cid
    words.add(blobCid)
    // What a public service may be asked for, and what it must not hear.
    const uri = `at://${AUTHORITY}/space/test.${NAME}.space/${NAME}/${alice.did}/${COLLECTION}/${NAME}`
    for (const path of ['app.bsky.feed.getTimeline', `app.bsky.feed.getPosts?uris=${encodeURIComponent(uri)}`])
      await app.call(path)
    await app.post('app.bsky.bookmark.createBookmark', { uri, cid: blobCid })
    await app.post('com.atproto.repo.createRecord', {
      repo: alice.did,
      collection: 'test.forum.public',
      record: { text: 'for everybody' },
    })
    // An outage, damage that is found, and what every pass and step says.
    const back = await pds.hide('space_op')
    expect(
      (
        await app.post('createRecord', {
          space: uri.split('/').slice(0, 6).join('/'),
          repo: alice.did,
          collection: COLLECTION,
          record: {},
        })
      ).status,
    ).toBe(500)
    await back()
    const [{ id }] = (await pds.rows('space_repo', { did: alice.did }, ['id'])) as [{ id: number }]
    await pds.damage(
      'space_record',
      { space_repo_id: id, path: `${COLLECTION}/${NAME}3` },
      { value: new Uint8Array([0xa0]) },
    )
    for (let passes = 0; passes < 2; passes++) {
      pds.clock.advance({ secs: 3700 })
      for (const { name, intervalSecs } of features.flatMap(({ sweeps = [] }) => sweeps))
        if (intervalSecs(pds.ctx.config) > 0) await pds.runSweep(name)
      await pds.runSteps()
    }
    // Tokens have expired since.
    const again = await logIn(pds, alice, alice.password)
    alice = again
    const bob = await createAccount(pds, 'bob')
    const { body: password } = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: 'app', privileged: true },
    })
    const byPassword = await logIn(pds, alice, password.password)
    const agent: RegisteredAgent = await registerAgent(pds, alice, {
      scopes: ['atproto', 'transition:generic', everything],
    })
    const wide = await spaceApp(pds, alice, 'transition:generic', 'transition:chat.bsky', 'repo:*', 'blob:*/*')
    others = {
      'a stranger': (path, init = {}) => request(`${pds.url}/xrpc/${path}`, init),
      'another account': bob.call,
      'a member with a grant': (await spaceApp(pds, bob, everything)).call,
      'a session': alice.call,
      'an app password': byPassword.call,
      'an agent': agent.call,
      'an app with all grants for public data': wide.call,
      'the operator': (path, init = {}) =>
        request(`${pds.url}/xrpc/${path}`, { ...init, headers: basic('admin', ADMIN_TOKEN) }),
    }
  })
  afterAll(() => relay.close())

  test('no method that reads says it, whoever calls and whatever is asked for', async () => {
    const plain = {
      did: alice.did,
      repo: alice.did,
      account: alice.did,
      actor: alice.did,
      identifier: alice.did,
      subject: alice.did,
      collection: 'test.forum.public',
      rkey: 'self',
      limit: '100',
    }
    const space = `at://${AUTHORITY}/space/test.${NAME}.space/${NAME}`
    const pointed = {
      ...plain,
      space,
      uri: `${space}/${alice.did}/${COLLECTION}/${NAME}`,
      collection: COLLECTION,
      rkey: NAME,
      cid: blobCid,
      cids: blobCid,
      nsid: COLLECTION,
    }
    const content = new Sentinels()
    content.add(TEXT)
    for (const [who, call] of Object.entries(others)) {
      let answers = 0
      for (const nsid of queries) {
        // All data of one's own account: archives have their own test.
        const ask = async (params: Record<string, string>, absent: Sentinels) => {
          const { status, body, headers } = await call(`${nsid}?${new URLSearchParams(params)}`)
          if (status === 200) answers++
          const said = Buffer.isBuffer(body) ? body : JSON.stringify(body)
          expect([who, nsid, absent.in(said), absent.in(JSON.stringify([...headers]))]).toEqual([who, nsid, [], []])
        }
        await ask(plain, words)
        await ask(pointed, content)
      }
      expect([who, answers > 10]).toEqual([who, true])
    }
    expect(queries.length).toBeGreaterThan(40)
  })

  test('no page and no other endpoint says it to strangers, operators and people who are signed in', async () => {
    const holder = await roleHolder(pds, 'olga', 'owner')
    const desk = new ConsoleBrowser(pds)
    await desk.signIn(holder.handle)
    expect(desk.cookie).not.toBe('')
    const visitor = await new DelegateBrowser(pds).signIn(alice)
    const seen = new Set<string>()
    for (const template of getRoutes) {
      // An archive has all that its account wrote. An operator who takes one is in the audit log.
      if (template.endsWith('/archive') || template.includes('*')) continue
      const path = template.replaceAll(/:(did|account)/g, encodeURIComponent(alice.did)).replaceAll(/:\w+/g, 'x')
      for (const [query, params] of [
        ['', {}],
        ['parts', { account: alice.did, did: alice.did, subject: alice.did, part: 'blobs', q: 'alice', limit: '50' }],
      ] as const)
        for (const ask of [
          (url: string) => request(`${pds.url}${url}`),
          (url: string) => request(`${pds.url}${url}`, { headers: bearer(ADMIN_TOKEN) }),
          (url: string) => request(`${pds.url}${url}`, { headers: bearer(alice.accessJwt) }),
          (url: string) => desk.open(url),
          (url: string) => visitor.open(url),
        ]) {
          const { status, body } = await ask(query === '' ? path : `${path}?${new URLSearchParams(params)}`)
          if (status === 200) seen.add(template)
          const said = Buffer.isBuffer(body) ? body : JSON.stringify(body)
          expect([template, query, words.in(said)]).toEqual([template, query, []])
        }
    }
    for (const page of [
      '/v1/admin/requests',
      '/v1/admin/audit',
      '/v1/admin/integrity',
      '/admin/requests',
      '/account/data',
    ])
      expect([page, seen.has(page)]).toEqual([page, true])
  })

  test('no frame of the firehose says it, and no row outside the tables of spaces', async () => {
    const frames = await relay.untilSeen((messages) =>
      messages.some(({ bytes }) => bytes.includes('test.forum.public')),
    )
    for (const { bytes } of frames) expect(words.in(bytes)).toEqual([])
    const tables = [...(await tablesOf(pds.ctx.db)).keys()].filter((name) => !name.startsWith('space_'))
    expect(tables.length).toBeGreaterThan(80)
    for (const table of tables) {
      // A blob is a row of its own, which says nothing of where it belongs.
      const rows = (await pds.rows(table as Table)).map((row) => ({ ...row, ...(table === 'blob' && { cid: null }) }))
      for (const row of rows)
        for (const [column, value] of Object.entries(row) as [string, unknown][]) {
          const kept = value instanceof Uint8Array ? value : String(value)
          expect([table, column, words.in(kept)]).toEqual([table, column, []])
        }
    }
  })

  test('neither the log, at any level, nor metrics nor traces say it', async () => {
    const { body: metrics } = await request(`${pds.url}/metrics`, { headers: basic('admin', ADMIN_TOKEN) })
    expect(String(metrics)).toContain('spaces_last_run_timestamp')
    expect(words.in(String(metrics))).toEqual([])
    expect(pds.log.some(({ route }) => route === 'com.atproto.space.createRecord')).toBe(true)
    expect(pds.log.some(({ level }) => level === 'error')).toBe(true)
    for (const line of pds.log) expect([line, words.in(JSON.stringify(line))]).toEqual([line, []])
    await until(() => collector.spans.some(({ name }) => name === 'com.atproto.space.listRepoOps'))
    expect(words.in(JSON.stringify(collector.spans))).toEqual([])
  })

  test('no mail, no alert and no other service is told', async () => {
    expect(recorder.received.some((one) => one.includes('getTimeline'))).toBe(true)
    expect(recorder.received.some((one) => one.includes('/hook') && one.includes('integrity'))).toBe(true)
    expect(pds.mails.length).toBeGreaterThan(0)
    for (const said of [...recorder.received, ...pds.mails.map((mail) => JSON.stringify(mail))])
      expect([said, words.in(said)]).toEqual([said, []])
    for (const { path } of author.received) expect([path, words.in(path)]).toEqual([path, []])
  })

  test('files beside the database and the blobs do not have it', () => {
    const found = readdirSync(pds.dataDir, { recursive: true, withFileTypes: true })
      .filter(
        (entry) => entry.isFile() && !entry.name.startsWith('holdfast.db') && !entry.parentPath.includes('/blobs'),
      )
      .map((entry) => join(entry.parentPath, entry.name))
    for (const path of found) expect([path, words.in(path), words.in(readFileSync(path))]).toEqual([path, [], []])
  })
})

test('backups that are sealed have it in no file, and neither has what waits to be sent', async () => {
  const PASSPHRASE = 'a passphrase for backups'
  const [continuous, archive] = [join(scratch, 'continuous'), join(scratch, 'archive')]
  const backup = { continuous, continuousLagMs: 100, passphrase: new Secret(PASSPHRASE), workFactor: 10 }
  await using pds = await startPds({ ...spacesOn, backup, rateLimit: { enabled: false } }, { onFile: true })
  const alice = await createAccount(pds, 'alice')
  const words = new Sentinels()
  const { cid } = await beBusy(pds, alice, await spaceApp(pds, alice, everything, 'blob:*/*'), words)
  words.add(cid)
  await until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup.lagMillis === 0)
  const env = {
    SERVICE_DATA_DIR: pds.dataDir,
    SERVICE_PUBLIC_URL: pds.url,
    SERVICE_PORT: '1',
    SERVICE_LOG_LEVEL: 'error',
    SERVICE_BACKUP_PASSPHRASE: PASSPHRASE,
    SERVICE_BACKUP_WORK_FACTOR: '10',
  }
  const said: string[] = []
  expect(await runCommand(quietTerminal(env, said), ['backup', archive, '--dev'])).toBe(0)
  expect(words.in(said.join('\n'))).toEqual([])
  const found = [continuous, archive, pds.dataDir].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  const isPlain = (path: string) => path.startsWith(join(pds.dataDir, 'blobs')) || path.includes('/holdfast.db')
  expect(found.filter((path) => !isPlain(path)).length).toBeGreaterThan(5)
  // An archive names the files of blobs by their CIDs, sealed or not.
  const withWords = found.filter(
    (path) => words.in(readFileSync(path)).length > 0 || words.in(path).some((word) => word !== cid),
  )
  // The database and the blobs of the running server have it, so the search finds what is there.
  expect(withWords.some((path) => path.includes('/holdfast.db'))).toBe(true)
  expect(withWords.filter((path) => !isPlain(path))).toEqual([])
})
