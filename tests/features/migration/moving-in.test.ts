/** Moving an account from another server to this one, which does the work: between two servers of ours. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { belongingsOf, settleIn } from '../../support/clients/migration.ts'
import { begin, giveMailedCode, moveOf, plan } from '../../support/clients/mover.ts'
import { lastOperation, publish } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { nextOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })
/** The old server. */
const old = setUp(() => startPds({ plcDirectoryUrl: plc.url, rateLimit: { enabled: false } }))

async function agentOf(service: string, account: TestAccount): Promise<AtpAgent> {
  const agent = new AtpAgent({ service })
  await agent.login({ identifier: account.did, password: account.password })
  return agent
}

describe('a whole move', () => {
  let from: TestAccount
  let moving: TestAccount
  let before: Awaited<ReturnType<typeof belongingsOf>>

  beforeAll(async () => {
    from = await createAccount(old, 'anna')
    const agent = await agentOf(old.url, from)
    await settleIn(agent)
    before = await belongingsOf(agent, plc.url)
  })

  test('is planned before anything is made', async () => {
    const planned = await plan(pds, from)
    expect(planned.status).toBe(200)
    expect(planned.body).toMatchObject({
      did: from.did,
      handle: 'anna.test',
      host: new URL(old.url).host,
      email: from.email,
      method: 'plc',
      records: 15,
      blobs: 3,
    })
    const found = await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(found.body.error).toBe('RepoNotFound')
  })

  test('brings repository, blobs and preferences, and leaves the old account as it is', async () => {
    moving = await begin(pds, from, 'anna-here')
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({
      stage: 'identity',
      needs: 'signature',
      fault: null,
      records: 15,
      blobs: { expected: 3, stored: 3, lost: 0 },
    })
    const status = await from.call('com.atproto.server.checkAccountStatus')
    expect(status.body).toMatchObject({ activated: true, validDid: true })
  })

  test('ends once the code that the old server mails is given', async () => {
    await giveMailedCode(pds, moving, old, from.email)
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', needs: null, fault: null })
    expect(await belongingsOf(await agentOf(pds.url, moving), plc.url)).toEqual(before)
    const here = await moving.call('com.atproto.server.checkAccountStatus')
    expect(here.body).toMatchObject({ activated: true, validDid: true })
    const there = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(there.body).toMatchObject({ active: false, status: 'deactivated' })
    for (const { ctx } of [pds, old]) expect(await faultsOfRepo(ctx, from.did as Did)).toEqual([])
  })

  test('keeps neither password nor session of the old server', async () => {
    expect(await pds.rows('move_in', { did: from.did })).toMatchObject([{ session_wrapped: null }])
    expect(await pds.rows('move_plan', { did: from.did })).toEqual([])
  })
})

test('what is written at the old server until the identity changes comes along', async () => {
  const from = await createAccount(old, 'wilma')
  const agent = await agentOf(old.url, from)
  await settleIn(agent)
  const moving = await begin(pds, from, 'wilma-here')
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'identity', records: 15 })
  // Days may pass until the mail with the code is read.
  const { data } = await agent.uploadBlob(new Uint8Array(3000).fill(7), { encoding: 'image/png' })
  await agent.post({ text: 'late', embed: { $type: 'app.bsky.embed.images', images: [{ image: data.blob, alt: '' }] } })
  const before = await belongingsOf(agent, plc.url)
  await giveMailedCode(pds, moving, old, from.email)
  expect(await moveOf(pds, moving)).toMatchObject({
    stage: 'done',
    fault: null,
    records: 16,
    blobs: { expected: 4, stored: 4, lost: 0 },
  })
  expect(await belongingsOf(await agentOf(pds.url, moving), plc.url)).toEqual(before)
  expect(await faultsOfRepo(pds.ctx, from.did as Did)).toEqual([])
})

describe('an account that was here before', () => {
  let from: TestAccount
  let there: TestAccount

  beforeAll(async () => {
    // Made here, moved to the other server, changed there.
    from = await createAccount(pds, 'rosa')
    there = await begin(old, from, 'rosa-there')
    await old.runSteps()
    await giveMailedCode(old, there, pds, from.email)
    expect(await moveOf(old, there)).toMatchObject({ stage: 'done' })
    await settleIn(await agentOf(old.url, there))
  })

  test('does not come back with another password', async () => {
    const planned = await plan(pds, there)
    const wanted = { plan: planned.body.plan, handle: from.handle, email: from.email, password: 'not the password' }
    expect(await request(`${pds.url}/v1/move-in`, { json: wanted })).toMatchObject({ status: 401 })
    const other = await begin(pds, there, 'rosa')
    const headers = bearer(other.accessJwt)
    expect(await request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers })).toMatchObject({ status: 200 })
    expect(await pds.count('account', { did: from.did })).toBe(1)
  })

  test('comes back with what it has become, under its handle here', async () => {
    const before = await belongingsOf(await agentOf(old.url, there), plc.url)
    const moving = await begin(pds, there, 'rosa')
    await pds.runSteps()
    await giveMailedCode(pds, moving, old, there.email)
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', handle: 'rosa.test', fault: null })
    expect(await belongingsOf(await agentOf(pds.url, moving), plc.url)).toEqual(before)
    const left = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(left.body).toMatchObject({ active: false })
  })
})

describe('what the identity names for permissioned data', () => {
  const entries = (key: string) => ({
    verificationMethods: { atproto_space: key },
    services: { atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' } },
  })

  /** An account of the old server whose identity has such entries, which a key of the holder has signed. */
  async function holderOf(name: string) {
    const device = deviceKey()
    const account = await createAccount(old, name, { recoveryKey: device.did })
    const last = (await lastOperation({ directory: plc, account })) as Operation
    const { services, verificationMethods } = entries(device.did)
    const changes = {
      services: { ...last.services, ...services },
      verificationMethods: { ...last.verificationMethods, ...verificationMethods },
    }
    await publish({ directory: plc, account }, signOperation(nextOperation(last, changes)!, device.key))
    return { device, account }
  }

  test('goes along, if the old server signs', async () => {
    const { device, account } = await holderOf('fritz')
    const moving = await begin(pds, account, 'fritz-here')
    await pds.runSteps()
    await giveMailedCode(pds, moving, old, account.email)
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
    expect(await lastOperation({ directory: plc, account })).toMatchObject(entries(device.did))
  })

  test('goes along, if the holder signs what a server is to be without the old one', async () => {
    const { device, account } = await holderOf('frida')
    const wish = { identifier: account.did, handle: 'frida-here.test', recoveryKey: device.did }
    const offer = await request(`${pds.url}/v1/move-in/offer`, { json: wish })
    expect(offer.body.operation).toMatchObject(entries(device.did))
    const { verificationMethods: _, ...without } = offer.body.operation
    const short = { ...without, verificationMethods: { atproto: offer.body.operation.verificationMethods.atproto } }
    const terms = { ...wish, email: 'frida-here@example.com', password: account.password }
    const ask = (operation: object) =>
      request(`${pds.url}/v1/move-in`, {
        json: { ...terms, operation: signOperation(operation as Operation, device.key) },
      })
    expect((await ask(short)).status).toBe(400)
    expect((await ask(offer.body.operation)).status).toBe(200)
  })
})
