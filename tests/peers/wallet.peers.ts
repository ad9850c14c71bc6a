/** An identity whose key is in a wallet, between this server and the reference, which knows nothing of wallets. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent, AtpAgent } from '@atproto/api'
import { checkAuditLog } from '../../src/protocol/plc.ts'
import { PASSWORD } from '../support/clients/account.ts'
import { claimCode, forCeremonies } from '../support/clients/ceremony.ts'
import { Consumer } from '../support/clients/consumer.ts'
import { request } from '../support/clients/http.ts'
import { lastCode } from '../support/servers/mail.ts'
import { belongingsOf, settleIn } from '../support/clients/migration.ts'
import { startPds, type TestPds } from '../support/servers/pds.ts'
import { startPlcServer, type PlcHost } from '../support/servers/plc-server.ts'
import { recoveryCodes } from '../support/clients/recovery.ts'
import { loopbackClient } from '../support/clients/standard-client.ts'
import { startUpstream, type Upstream } from '../support/servers/upstream.ts'
import { completeConsent, walletPathOf } from '../support/clients/wallet-consent.ts'
import { printedShare, WalletUser } from '../support/clients/wallet-user.ts'
import { startPostOffice, type PostOffice } from './post-office.ts'
import { startReference, type Reference } from './reference.ts'

const APPVIEW_DID = 'did:web:appview.test'
const EMAIL = 'vera@example.com'

let plc: PlcHost
let post: PostOffice
let appview: Upstream
let reference: Reference
let pds: TestPds
let user: WalletUser

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
    ...forCeremonies,
    plcDirectoryUrl: plc.url,
    accounts: { passwordOptional: true },
    appview: { url: appview.url, did: `${APPVIEW_DID}#bsky_appview` },
  })
  user = new WalletUser(() => pds.clock.now())
}, 120_000)
afterAll(async () => {
  user[Symbol.dispose]()
  await Promise.all([pds, reference].map((server) => server[Symbol.asyncDispose]()))
  await Promise.all([plc, post, appview].map((server) => server[Symbol.asyncDispose]()))
})

async function agentHere(device?: string): Promise<AtpAgent> {
  const session = JSON.parse(await user.do(['sign-in', '--print'], { device }))
  const agent = new AtpAgent({ service: pds.url })
  await agent.resumeSession({ ...session, active: true })
  return agent
}

/**
 * Post, and wait until a consumer that verifies everything has heard of it. What was signed with earlier keys it cannot
 * verify any more.
 */
async function isHeard(agent: AtpAgent, service: string, text: string): Promise<void> {
  const consumer = new Consumer(service, { startCursor: 0, plcUrl: plc.url })
  await agent.post({ text })
  await consumer.until((events) => events.some((event) => event.event === 'create' && event.record['text'] === text))
  await consumer.stop()
}

/** An app of the network's own client asks; the wallet approves, and the app writes. */
async function letAppWrite(did: string): Promise<void> {
  const { client } = loopbackClient({ url: pds.url, plcUrl: plc.url })
  const page = await client.authorize('vera.test', { scope: 'atproto transition:generic' })
  const { userCode, requestId } = walletPathOf((await request(page.href)).body)!
  await user.do(['approve', userCode, '--yes'])
  const back = new URL((await completeConsent(pds, requestId)).headers.get('location')!)
  const { session } = await client.callback(back.searchParams)
  const app = new Agent(session)
  await app.com.atproto.repo.createRecord({ repo: did, collection: 'org.example.note', record: { text: 'by the app' } })
}

test('a whole life, a part of it at the reference, by the wallet alone', async () => {
  const place = ['--server', pds.url, '--directory', plc.url]
  await user.do(['create', ...place, '--handle', 'vera.test', '--email', EMAIL, '--code', await claimCode(pds)])
  const { did, recoveryKey } = await user.contents()
  await settleIn(await agentHere())
  await isHeard(await agentHere(), pds.url, 'hello')
  await letAppWrite(did!)
  await user.do(['rotate-key'])
  await isHeard(await agentHere(), pds.url, 'with the second key')
  const before = await belongingsOf(await agentHere(), plc.url)
  const device = await user.do(['key'])

  const words = ['move', reference.url, '--handle', 'vera.peer.test', '--email', EMAIL, '--password', '--yes']
  expect(await user.do(words, { answers: { 'Password: ': PASSWORD, 'Once more: ': PASSWORD } })).toContain(
    `now at ${reference.url}`,
  )
  const there = new AtpAgent({ service: reference.url })
  await there.login({ identifier: 'vera.peer.test', password: PASSWORD })
  expect(there.session?.active).toBe(true)
  // The reference signs nothing anew until the next write.
  await isHeard(there, reference.url, 'from the reference')
  const { records, ...rest } = await belongingsOf(there, plc.url)
  expect(rest).toEqual({ blobs: before.blobs, preferences: before.preferences })
  expect(records).toMatchObject(before.records)
  // The reference is the lowest of the keys, and keeps no share.
  const away = (await request(`${plc.url}/${did}/data`)).body
  expect(away.services.atproto_pds.endpoint).toBe(reference.url)
  expect(away.rotationKeys.slice(0, 2)).toEqual([device, recoveryKey])
  expect(await user.run(['sign-in'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('"sovereignSessions" is not among'),
  })

  const paper = printedShare(await user.do(['move', pds.url, '--handle', 'vera.test', '--email', EMAIL, '--yes']))
  const home = await agentHere()
  expect(Object.keys((await belongingsOf(home, plc.url)).records)).toHaveLength(Object.keys(before.records).length + 1)
  await isHeard(home, pds.url, 'home again')
  await user.do(['rotate-key'])
  await isHeard(await agentHere(), pds.url, 'with another key')

  const { body: log } = await request(`${plc.url}/${did}/log/audit`)
  const outcome = checkAuditLog(did!, log)
  const contents = await user.contents()
  expect(outcome.ok && outcome.state?.rotationKeys.slice(0, 2)).toEqual([device, contents.recoveryKey!])
  expect(outcome.ok && outcome.state?.services['atproto_pds']?.endpoint).toBe(pds.url)

  await recoverOn('second', paper)
  expect((await user.run(['sign-in'])).code).toBe(1)
  await isHeard(await agentHere('second'), pds.url, 'on the second device')
  await endOn('second', did!)
})

async function recoverOn(device: string, paper: string): Promise<void> {
  await user.do(['recover', 'vera.test', '--server', pds.url, '--directory', plc.url], { device })
  await user.do(['recover', '--code', (await recoveryCodes(pds, EMAIL)).at(-1)!], { device })
  pds.clock.advance({ days: 1, secs: 1 })
  await user.do(['recover', '--share', paper], { device })
}

async function endOn(device: string, did: string): Promise<void> {
  const consumer = new Consumer(pds.url, { startCursor: 0, plcUrl: plc.url })
  await user.do(['delete'], { device })
  await user.do(['delete', '--code', await lastCode(pds, EMAIL), '--yes'], { device })
  await consumer.until((events) =>
    events.some((event) => event.event === 'account' && event.did === did && event.status === 'deleted'),
  )
  await consumer.stop()
  const outcome = checkAuditLog(did, (await request(`${plc.url}/${did}/log/audit`)).body)
  expect(outcome).toMatchObject({ ok: true, state: null, head: { operation: { type: 'plc_tombstone' } } })
}
