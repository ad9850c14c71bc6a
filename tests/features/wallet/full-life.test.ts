/**
 * An identity from its first day to its last, whose owner has nothing but `holdfast wallet`: two servers, a real
 * directory, the network's own client for apps, and a consumer of the firehose that verifies everything.
 */
import { expect, test } from 'bun:test'
import { Agent, AtpAgent } from '@atproto/api'
import type { Event } from '@atproto/sync'
import { checkAuditLog } from '../../../src/protocol/plc.ts'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { request } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { belongingsOf, settleIn, verifiedRepo } from '../../support/clients/migration.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { recoveryCodes } from '../../support/clients/recovery.ts'
import { loopbackClient } from '../../support/clients/standard-client.ts'
import { completeConsent, walletPathOf } from '../../support/clients/wallet-consent.ts'
import { printedShare, WalletUser } from '../../support/clients/wallet-user.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const EMAIL = 'alice@example.com'
const DAY_SECS = 86_400

let did = ''
/** The words of the share that is on paper now. */
let paper = ''
/** The device that she uses now. */
let device = 'first'

const config = { ...forCeremonies, accounts: { passwordOptional: true } }
const { pds: home, plc } = useWorld({ plc: true, config })
const abroad = setUp(() => startPds({ ...config, plcDirectoryUrl: plc.url, availableUserDomains: ['abroad.test'] }))
const user = setUp(() => new WalletUser(() => home.clock.now()))
const atHome = setUp(
  () => new Consumer(home.url, { startCursor: 0, plcUrl: plc.url }),
  (consumer) => consumer.stop(),
)

const wallet = (words: string[], of = device) => user.do(words, { device: of })
const operations = async () => (await request(`${plc.url}/${did}/log/audit`)).body
const identity = async () => (await request(`${plc.url}/${did}/data`)).body
const statusAt = async (pds: TestPds) =>
  (await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)).body

async function agentAt(pds: TestPds): Promise<AtpAgent> {
  const session = JSON.parse(await wallet(['sign-in', '--print']))
  const agent = new AtpAgent({ service: pds.url })
  await agent.resumeSession({ ...session, active: true })
  return agent
}

/** Post, and wait until the consumer has verified it: whatever it has not read by then, it reads with another key. */
async function postHeardBy(consumer: Consumer, pds: TestPds, text: string): Promise<AtpAgent> {
  const agent = await agentAt(pds)
  await agent.post({ text })
  await consumer.until((events) => events.some((event) => event.event === 'create' && event.record['text'] === text))
  expect(consumer.faults).toEqual([])
  return agent
}

const accountEvents = (events: Event[]) =>
  events
    .filter((event) => event.event === 'account' && event.did === did)
    .map((event) => (event.event === 'account' ? (event.status ?? event.active) : null))

test('an identity is born by the ceremony', async () => {
  const words = ['create', '--server', home.url, '--directory', plc.url, '--handle', 'alice.test', '--email', EMAIL]
  paper = printedShare(await wallet([...words, '--code', await claimCode(home)]))
  did = (await user.contents(device)).did!
  await atHome.until((events) => accountEvents(events).length > 0)
  expect((await identity()).alsoKnownAs).toEqual(['at://alice.test'])
})

test('an identity posts', async () => {
  await settleIn(await agentAt(home))
  await postHeardBy(atHome, home, 'hello')
})

test('an identity approves an app, which then acts for it', async () => {
  const { client } = loopbackClient({ url: home.url, plcUrl: plc.url })
  const page = await client.authorize('alice.test', { scope: 'atproto transition:generic' })
  const { userCode, requestId } = walletPathOf((await request(page.href)).body)!
  await wallet(['approve', userCode, '--yes'])
  const { session } = await client.callback(
    new URL((await completeConsent(home, requestId)).headers.get('location')!).searchParams,
  )
  expect(session.did as string).toBe(did)
  const app = new Agent(session)
  await app.com.atproto.repo.createRecord({ repo: did, collection: 'org.example.note', record: { text: 'by the app' } })
  await postHeardBy(atHome, home, 'after the app')
})

test('an identity rotates the key of its repository', async () => {
  const before = (await identity()).verificationMethods.atproto
  await wallet(['rotate-key'])
  const agent = await postHeardBy(atHome, home, 'with the new key')
  expect((await identity()).verificationMethods.atproto).not.toBe(before)
  await verifiedRepo(agent, plc.url)
})

test('an identity moves away and comes back, with everything', async () => {
  const before = await belongingsOf(await agentAt(home), plc.url)
  const away = await wallet(['move', abroad.url, '--handle', 'alice.abroad.test', '--email', EMAIL, '--yes'])
  expect(printedShare(away)).not.toBe(paper)
  expect(await belongingsOf(await agentAt(abroad), plc.url)).toEqual(before)
  expect(await statusAt(home)).toMatchObject({ active: false, status: 'deactivated' })

  const consumer = new Consumer(abroad.url, { startCursor: 0, plcUrl: plc.url })
  await postHeardBy(consumer, abroad, 'from abroad')
  await consumer.stop()
  paper = printedShare(await wallet(['move', home.url, '--handle', 'alice.test', '--email', EMAIL, '--yes']))
  expect(await statusAt(abroad)).toMatchObject({ active: false, status: 'deactivated' })
  await postHeardBy(atHome, home, 'home again')
  expect((await identity()).services.atproto_pds.endpoint).toBe(home.url)
})

test('an identity loses its device, and comes back on another', async () => {
  const lost = device
  device = 'second'
  await wallet(['recover', 'alice.test', '--server', home.url, '--directory', plc.url])
  await wallet(['recover', '--code', (await recoveryCodes(home, EMAIL)).at(-1)!])
  home.clock.advance({ secs: DAY_SECS + 1 })
  paper = printedShare(await wallet(['recover', '--share', paper]))
  await postHeardBy(atHome, home, 'on the second device')
  expect((await user.run(['sign-in'], { device: lost })).code).toBe(1)
})

test('an identity moves to a third device, and both old ones are worth nothing', async () => {
  const old = device
  const printed = /holdfast wallet (transfer --join .*)/.exec(await wallet(['transfer']))![1]!
  const { recoveryKey } = await user.contents(old)
  device = 'third'
  const joined = await wallet(printed.split(' '))
  await wallet(['transfer', '--to', /did:key:\w+/.exec(joined)![0]], old)
  paper = printedShare(await wallet(['transfer']))
  await postHeardBy(atHome, home, 'on the third device')
  expect((await user.run(['sign-in'], { device: old })).code).toBe(1)
  expect((await identity()).rotationKeys).not.toContain(recoveryKey)
})

test('an identity deletes its account and ends', async () => {
  await wallet(['delete'])
  await wallet(['delete', '--code', await lastCode(home, EMAIL), '--yes'])
  await atHome.until((events) => accountEvents(events).includes('deleted'))
  const log = checkAuditLog(did, await operations())
  expect(log).toMatchObject({ ok: true, state: null, head: { operation: { type: 'plc_tombstone' } } })
  expect(atHome.faults).toEqual([])
  expect(accountEvents(atHome.events)).toEqual([true, 'deactivated', true, 'deleted'])
})
