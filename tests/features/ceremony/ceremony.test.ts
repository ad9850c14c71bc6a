/** The ceremony as a wallet goes through it, with a real directory and a consumer of the firehose. */
import { AtpAgent } from '@atproto/api'
import { describe, expect, test } from 'bun:test'
import { readCar } from '../../../src/protocol/car.ts'
import { formatBareMultibase, formatDidKey, parseDidKey } from '../../../src/protocol/keys.ts'
import {
  bear,
  begin,
  claimCode,
  didRequest,
  forCeremonies,
  mobile,
  newWallet,
  operate,
  prepared,
  sendDid,
  signingKeyFor,
} from '../../support/clients/ceremony.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { Subscriber, type Message } from '../../support/clients/subscriber.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { xrpc } from '../../support/clients/account.ts'
import { useWorld } from '../../support/world.ts'

const OPAQUE_TOKEN = /^[A-Za-z0-9_-]{43}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const { pds, plc } = useWorld({ plc: true, config: { ...forCeremonies, accounts: { passwordOptional: true } } })

test('the server offers the ceremony', async () => {
  const { body } = await xrpc(pds, 'com.atproto.server.describeServer')
  expect(body.custos.capabilities).toContain('createCeremony')
})

describe('a wallet', () => {
  const alice = newWallet('alice')
  const consumerOf = () => new Consumer(pds.url, { startCursor: 0, plcUrl: plc.url })
  let request1: ReturnType<typeof didRequest>
  let did = ''
  let session = ''

  test('claims handle and address with a code', async () => {
    alice.code = await claimCode(pds)
    const { status, body } = await mobile(pds, alice, { email: ' Alice@Example.com ', handle: 'Alice.test' })
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        accountId: expect.stringMatching(UUID),
        deviceId: expect.stringMatching(UUID),
        deviceToken: expect.stringMatching(OPAQUE_TOKEN),
        sessionToken: expect.stringMatching(OPAQUE_TOKEN),
        nextStep: 'did_creation',
      },
    })
    alice.token = body.sessionToken
    const { body: pdsOf } = await request(`${pds.url}/v1/devices/${body.deviceId}/pds`, {
      headers: bearer(body.deviceToken),
    })
    expect(pdsOf).toMatchObject({ pdsUrl: pds.url })
  })

  test('gets the same signing key as often as it asks', async () => {
    const { status, body } = await signingKeyFor(pds, alice)
    const key = parseDidKey(body.keyId)!
    expect({ status, body }).toEqual({
      status: 200,
      body: { keyId: formatDidKey(key), publicKey: formatBareMultibase(key), algorithm: 'p256' },
    })
    expect(key.curve).toBe('p256')
    expect((await signingKeyFor(pds, alice)).body).toEqual(body)
    request1 = didRequest(pds, alice, body.keyId)
  })

  test('sends its identity and has an account', async () => {
    const { status, body } = await sendDid(pds, alice, { ...request1, password: null })
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        did: expect.stringMatching(/^did:plc:[a-z2-7]{24}$/),
        did_document: {
          '@context': ['https://www.w3.org/ns/did/v1'],
          id: body.did,
          alsoKnownAs: ['at://alice.test'],
          verificationMethod: [
            {
              id: `${body.did}#atproto`,
              type: 'Multikey',
              controller: body.did,
              publicKeyMultibase: request1.signedCreationOp.verificationMethods['atproto']!.slice('did:key:'.length),
            },
          ],
          service: [{ id: '#atproto_pds', type: 'AtprotoPersonalDataServer', serviceEndpoint: pds.url }],
        },
        status: 'active',
        session_token: expect.stringMatching(OPAQUE_TOKEN),
      },
    })
    did = body.did
    session = body.session_token
    const { body: log } = await request(`${plc.url}/${did}/log`)
    expect(log).toEqual([request1.signedCreationOp])
  })

  test('loses what it held on the way', async () => {
    expect(await signingKeyFor(pds, alice)).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
    expect(await sendDid(pds, alice, request1)).toMatchObject({
      status: 401,
      body: { error: { code: 'UNAUTHORIZED' } },
    })
    const { body } = await operate(pds, '/v1/admin/ceremonies')
    expect(body.ceremonies).toEqual([])
  })

  test('has no handle until it takes one, and takes the one that was kept', async () => {
    expect(await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).toMatchObject({
      status: 200,
      body: { handle: 'handle.invalid', did },
    })
    const take = (handle: string) =>
      request(`${pds.url}/v1/handles`, { headers: bearer(session), json: { accountId: did, handle } })
    expect(await take('alice.test')).toMatchObject({
      status: 200,
      body: { handle: 'alice.test', dns_status: 'not_configured', did },
    })
    expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=alice.test`)).toMatchObject({ body: { did } })
  })

  test('is announced by events that a consumer verifies', async () => {
    const consumer = consumerOf()
    const events = await consumer.until((events) => events.some(({ event }) => event === 'identity'))
    expect(consumer.faults).toEqual([])
    expect(events.filter((event) => event.did === did).map(({ event }) => event)).toEqual([
      'sync',
      'account',
      'identity',
    ])
    await consumer.stop()
  })

  test('has an empty repository, announced in the order in which others learn to trust it', async () => {
    const { body: head } = await xrpc(pds, `com.atproto.sync.getLatestCommit?did=${did}`)
    const subscriber = new Subscriber(pds.url, '?cursor=0')
    const messages = await subscriber.until(4)
    subscriber.close()
    const [commit, sync, account, identity] = messages.filter(({ body }) => (body['repo'] ?? body['did']) === did)
    expect([commit, sync, account, identity].map((message) => message?.type)).toEqual([
      '#commit',
      '#sync',
      '#account',
      '#identity',
    ])
    expect(commit!.body).toMatchObject({ repo: did, ops: [], since: null, rev: head.rev, blobs: [], tooBig: false })
    expect(commit!.body).not.toHaveProperty('prevData')
    expect(String(commit!.body['commit'])).toBe(head.cid)
    const archiveOf = async (message: Message): Promise<{ root: string; blocks: string[] }> => {
      const { roots, pages } = await readCar([message.body['blocks'] as Uint8Array])
      const blocks = (await Array.fromAsync(pages)).flat().map(({ cid }) => cid.toString())
      return { root: String(roots[0]), blocks }
    }
    // The commit and the root of an empty tree; then the commit alone.
    expect(await archiveOf(commit!)).toEqual({ root: head.cid, blocks: [head.cid, expect.any(String)] })
    expect(await archiveOf(sync!)).toEqual({ root: head.cid, blocks: [head.cid] })
    expect(account!.body).toMatchObject({ did, active: true })
    expect(identity!.body).toMatchObject({ did, handle: 'alice.test' })
  })

  test('has put a share into escrow, and its holder is in the log once', async () => {
    expect(await pds.rows('escrow_audit', { did }, ['event', 'detail'])).toEqual([
      { event: 'deposited', detail: JSON.stringify({ set_id: 7, version: 2 }) },
    ])
    const lines = pds.log.filter((line) => line.did === did && line.message === 'account created')
    expect(lines).toHaveLength(1)
  })
})

test('an account made with a password works with the clients that there are', async () => {
  const bob = await bear(pds, 'bob')
  await request(`${pds.url}/v1/handles`, {
    headers: bearer(bob.session),
    json: { accountId: bob.did, handle: bob.handle },
  })
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: bob.handle, password: 'correct horse battery staple' })
  const { uri } = await agent.post({ text: 'Born by ceremony' })
  expect(uri).toStartWith(`at://${bob.did}/app.bsky.feed.post/`)
  expect((await agent.com.atproto.server.checkAccountStatus()).data).toMatchObject({ activated: true, validDid: true })
})

test('an account without a handle signs in by its address, and writes', async () => {
  const carol = await bear(pds, 'carol')
  const agent = new AtpAgent({ service: pds.url })
  const { data } = await agent.login({ identifier: carol.email, password: 'correct horse battery staple' })
  expect(data).toMatchObject({ did: carol.did, handle: 'handle.invalid', email: carol.email })
  await agent.post({ text: 'Nameless' })
  expect((await agent.com.atproto.server.getSession()).data).toMatchObject({ handle: 'handle.invalid', active: true })
})

test('a ceremony goes on after a restart between any two steps', async () => {
  const dora = await begin(pds, 'dora')
  await pds.restart()
  const request = await prepared(pds, dora)
  await pds.restart()
  expect(await signingKeyFor(pds, dora)).toMatchObject({
    body: { keyId: request.signedCreationOp.verificationMethods['atproto'] },
  })
  expect(await sendDid(pds, dora, request)).toMatchObject({ status: 200 })
})
