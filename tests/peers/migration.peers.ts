/** Accounts that move between the reference and this server, both ways, with everything they have. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { PASSWORD } from '../support/clients/account.ts'
import { Consumer, resolverAt } from '../support/clients/consumer.ts'
import { lastCode } from '../support/servers/mail.ts'
import { belongingsOf, moveAccount, returnHome, settleIn, verifiedRepo } from '../support/clients/migration.ts'
import { begin, giveCode, moveOf } from '../support/clients/mover.ts'
import { startPds, type TestPds } from '../support/servers/pds.ts'
import { startPlcServer, type PlcHost } from '../support/servers/plc-server.ts'
import { startUpstream, type Upstream } from '../support/servers/upstream.ts'
import { Subscriber } from '../support/clients/subscriber.ts'
import { TokenReader } from '../support/clients/token-reader.ts'
import { startPostOffice, type PostOffice } from './post-office.ts'
import { startReference, type Reference } from './reference.ts'

const APPVIEW_DID = 'did:web:appview.test'

let plc: PlcHost
let post: PostOffice
let appview: Upstream
let reference: Reference
let pds: TestPds

beforeAll(async () => {
  ;[plc, post] = await Promise.all([startPlcServer(), startPostOffice()])
  appview = startUpstream()
  reference = await startReference({
    plcUrl: plc.url,
    smtpUrl: post.url,
    handleDomain: '.peer.test',
    appview: { url: appview.url, did: APPVIEW_DID },
  })
  pds = await startPds({
    plcDirectoryUrl: plc.url,
    rateLimit: { enabled: false },
    appview: { url: appview.url, did: `${APPVIEW_DID}#bsky_appview` },
  })
}, 120_000)
afterAll(async () => {
  await Promise.all([pds, reference].map((server) => server[Symbol.asyncDispose]()))
  await Promise.all([plc, post, appview].map((server) => server[Symbol.asyncDispose]()))
})

/** Mails of the reference that have been read, and the one that comes next. */
let mails = 1

async function settledAt(service: string, handle: string): Promise<AtpAgent> {
  const agent = new AtpAgent({ service })
  await agent.createAccount({ handle, email: `${handle}@example.com`, password: PASSWORD })
  await settleIn(agent)
  return agent
}

/** Posts, and waits until a consumer of the server that verifies everything has seen it. */
async function isHeard(agent: AtpAgent): Promise<string[]> {
  const service = agent.serviceUrl.origin
  const isOwn = (about: object) => Object.values(about).includes(agent.assertDid)
  await agent.post({ text: 'from the new home' })
  // Others who were here have left: what they wrote is signed with keys that are theirs no more.
  const reader = new Subscriber(service, '?cursor=0')
  for (let count = 1; !reader.messages.some(({ body }) => isOwn(body)); count++) await reader.until(count)
  reader.close()
  const consumer = new Consumer(service, {
    startCursor: reader.messages.find(({ body }) => isOwn(body))!.body.seq - 1,
    plcUrl: plc.url,
  })
  await consumer.heard(
    (event) => isOwn(event) && event.event === 'create' && event.record['text'] === 'from the new home',
  )
  await consumer.stop()
  expect(consumer.faults).toEqual([])
  return consumer.events.filter(isOwn).map(({ event }) => event)
}

test('from the reference to here', async () => {
  const agent = await settledAt(reference.url, 'anna.peer.test')
  const before = await belongingsOf(agent, plc.url)
  expect([Object.keys(before.records).length, Object.keys(before.blobs).length]).toEqual([15, 3])
  const moved = await moveAccount({
    from: agent,
    to: pds.url,
    handle: 'anna.test',
    email: 'anna@example.com',
    password: PASSWORD,
    mailedCode: () => post.lastCode(mails++),
  })
  expect(await belongingsOf(moved, plc.url)).toEqual(before)
  expect(await resolverAt(plc.url).did.resolve(agent.assertDid)).toMatchObject({
    alsoKnownAs: ['at://anna.test'],
    service: [{ serviceEndpoint: pds.url }],
  })
  expect(await isHeard(moved)).toEqual(['identity', 'account', 'identity', 'sync', 'create'])
  await verifiedRepo(moved, plc.url)
})

test('from the reference to here, when this server does the work', async () => {
  const agent = await settledAt(reference.url, 'nora.peer.test')
  const before = await belongingsOf(agent, plc.url)
  const moving = await begin(pds, { did: agent.assertDid, password: PASSWORD }, 'nora', { email: 'nora@example.com' })
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({
    needs: 'signature',
    fault: null,
    blobs: { expected: 3, stored: 3, lost: 0 },
  })
  expect((await agent.com.atproto.server.checkAccountStatus()).data.activated).toBe(true)
  const given = await giveCode(pds, moving, await post.lastCode(mails++))
  expect(given).toMatchObject({ status: 200 })
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })

  const moved = new AtpAgent({ service: pds.url })
  await moved.login({ identifier: moving.did, password: moving.password })
  expect(await belongingsOf(moved, plc.url)).toEqual(before)
  const { data: there } = await agent.com.atproto.sync.getRepoStatus({ did: moving.did })
  expect(there).toMatchObject({ active: false, status: 'deactivated' })
  expect(await isHeard(moved)).toContain('create')
})

test('from here to the reference', async () => {
  const agent = await settledAt(pds.url, 'otto.test')
  const before = await belongingsOf(agent, plc.url)
  const moved = await moveAccount({
    from: agent,
    to: reference.url,
    handle: 'otto.peer.test',
    email: 'otto@example.com',
    password: PASSWORD,
    mailedCode: () => lastCode(pds, 'otto.test@example.com'),
  })
  // The reference signs nothing anew until the next write.
  await moved.post({ text: 'signed here' })
  const { records, ...rest } = await belongingsOf(moved, plc.url)
  expect(rest).toEqual({ blobs: before.blobs, preferences: before.preferences })
  expect(records).toMatchObject(before.records)
  expect(await isHeard(moved)).toContain('create')
})

test('there and back again', async () => {
  const agent = await settledAt(pds.url, 'rosa.test')
  const there = await moveAccount({
    from: agent,
    to: reference.url,
    handle: 'rosa.peer.test',
    email: 'rosa@example.com',
    password: PASSWORD,
    mailedCode: () => lastCode(pds, 'rosa.test@example.com'),
  })
  await there.post({ text: 'written there' })
  const before = await belongingsOf(there, plc.url)

  await returnHome({ from: there, to: agent, mailedCode: () => post.lastCode(mails++) })
  expect(await belongingsOf(agent, plc.url)).toEqual(before)
  expect(await isHeard(agent)).toContain('create')
})

test('a service that remembers keys for a day reads the tokens of an account from the reference, from here, and from there again', async () => {
  const reader = new TokenReader(plc.url)
  const there = await settledAt(reference.url, 'ida.peer.test')
  expect(await reader.hear(there)).toBe(there.assertDid)
  const here = await moveAccount({
    from: there,
    to: pds.url,
    handle: 'ida.test',
    email: 'ida@example.com',
    password: PASSWORD,
    mailedCode: () => post.lastCode(mails++),
  })
  expect(await reader.hear(here)).toBe(there.assertDid)
  expect(await isHeard(here)).toContain('create')
  await returnHome({ from: here, to: there, mailedCode: () => lastCode(pds, 'ida@example.com') })
  expect(await reader.hear(there)).toBe(there.assertDid)
  expect(await isHeard(there)).toContain('create')
})
