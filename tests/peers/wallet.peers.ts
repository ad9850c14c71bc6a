/** An identity whose key is in a wallet, between this server and the reference, which knows nothing of wallets. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { checkAuditLog } from '../../src/protocol/plc.ts'
import { PASSWORD } from '../harness/account.ts'
import { claimCode, forCeremonies } from '../harness/ceremony.ts'
import { Consumer } from '../harness/consumer.ts'
import { request } from '../harness/http.ts'
import { belongingsOf, settleIn } from '../harness/migration.ts'
import { startPds, type TestPds } from '../harness/pds.ts'
import { startPlcServer, type PlcHost } from '../harness/plc-server.ts'
import { startUpstream, type Upstream } from '../harness/upstream.ts'
import { WalletUser } from '../harness/wallet-user.ts'
import { startPostOffice, type PostOffice } from './post-office.ts'
import { startReference, type Reference } from './reference.ts'

const APPVIEW_DID = 'did:web:appview.test'

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

async function agentHere(): Promise<AtpAgent> {
  const session = JSON.parse(await user.do(['sign-in', '--print']))
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

test('there and back again, by the wallet alone', async () => {
  const place = ['--server', pds.url, '--directory', plc.url]
  const born = ['create', ...place, '--handle', 'vera.test', '--email', 'vera@example.com', '--code', await claimCode(pds)]
  await user.do(born)
  const { did, recoveryKey } = await user.contents()
  await settleIn(await agentHere())
  const before = await belongingsOf(await agentHere(), plc.url)
  const device = await user.do(['key'])

  const words = ['move', reference.url, '--handle', 'vera.peer.test', '--email', 'vera@example.com', '--password', '--yes']
  expect(await user.do(words, { answers: { 'Password: ': PASSWORD, 'Once more: ': PASSWORD } })).toContain(`now at ${reference.url}`)
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
  expect(await user.run(['sign-in'])).toMatchObject({ code: 1, err: expect.stringContaining('"sovereignSessions" is not among') })

  await user.do(['move', pds.url, '--handle', 'vera.test', '--email', 'vera@example.com', '--yes'])
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
})
