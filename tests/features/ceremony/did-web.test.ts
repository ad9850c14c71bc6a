/**
 * The ceremony of a did:web: the document that the wallet sends must be the one that its host publishes, byte for byte.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { begin, forCeremonies, sendDid, signingKeyFor } from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { askSession, sessionRequest } from '../../support/clients/wallet.ts'
import vectors from '../../vectors/contract/did-web-ceremony-v1.json' with { type: 'json' }
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const HOST = 'alice.web.test'
const DID = `did:web:${HOST}`

let keyId: string
const { pds, dns, web } = useWorld({
  web: [HOST, 'bob.web.test'],
  config: { ...forCeremonies, accounts: { passwordOptional: true } },
})
const wallet = setUp(() => begin(pds, 'alice'))
beforeAll(async () => {
  dns.setAddresses('inside.web.test', '10.0.0.1')
  keyId = (await signingKeyFor(pds, wallet)).body.keyId
})

/** Of the vector, with the keys of this wallet and the address of this server. */
const documentOf = (did = DID, of = wallet, key = keyId): string =>
  vectors.request.didWebDocument
    .replaceAll(vectors.did, did)
    .replaceAll(vectors.pendingHandle, of.handle)
    .replaceAll(vectors.request.rotationKeyPublic.slice('did:key:'.length), of.device.did.slice('did:key:'.length))
    .replaceAll(vectors.issuedRepoKey.slice('did:key:'.length), key.slice('did:key:'.length))
    .replaceAll(vectors.publicUrl, pds.url)
const publish = (text: string, host = HOST) => web.publish(host, '/.well-known/did.json', text)
const send = (didWebDocument: string, of = wallet) =>
  sendDid(pds, of, { rotationKeyPublic: of.device.did, didWebDocument, recoveryKey: null, escrowShare: null })
const refused = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('a document', () => {
  test('that is not published is not found', async () => {
    expect(await send(documentOf())).toMatchObject(refused(404, 'DidNotFound'))
  })

  test('that is published with other bytes is refused, although it means the same', async () => {
    publish(JSON.stringify(JSON.parse(documentOf())))
    expect(await send(documentOf())).toMatchObject(refused(400, 'INVALID_CLAIM'))
    publish(`\uFEFF${documentOf()}`)
    expect(await send(documentOf())).toMatchObject(refused(400, 'INVALID_CLAIM'))
  })

  test('whose host fails, or is none that may be asked, is a failure of the host', async () => {
    const answers = [
      () => new Response('no', { status: 500 }),
      () => new Response('gone', { status: 410 }),
      () => Response.redirect(`https://bob.web.test/.well-known/did.json`),
      () => new Response('x'.repeat(70 * 1024)),
    ]
    publish(documentOf(), 'bob.web.test')
    for (const answer of answers) {
      web.publish(HOST, '/.well-known/did.json', answer)
      expect(await send(documentOf())).toMatchObject(refused(502, 'PLC_DIRECTORY_ERROR'))
    }
    for (const did of ['did:web:inside.web.test', 'did:web:10.0.0.1', 'did:web:nobody.web.test'])
      expect({ did, ...(await send(documentOf(did))) }).toMatchObject({ did, ...refused(502, 'PLC_DIRECTORY_ERROR') })
  })

  test.each(vectors.reject)('is not even fetched if it does not fit: $name', async ({ didWebDocument }) => {
    const before = web.requests.length
    expect(await send(didWebDocument)).toMatchObject(refused(400, 'INVALID_CLAIM'))
    expect(web.requests).toHaveLength(before)
  })

  test('is refused if it is nested deeper than anybody needs', async () => {
    const deep = documentOf().replace(/}$/, `,"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)
    publish(deep)
    expect(await send(deep)).toMatchObject(refused(400, 'INVALID_CLAIM'))
  })

  test('leaves nothing behind when it is refused', async () => {
    expect(await pds.rows('ceremony', { handle: wallet.handle }, ['did'])).toEqual([{ did: null }])
    expect(await pds.rows('web_document', {}, ['did'])).toEqual([])
  })

  test('that is published becomes an account without a share in escrow', async () => {
    publish(documentOf())
    const { status, body } = await send(documentOf())
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { did: DID, did_document: JSON.parse(documentOf()), status: 'active' },
    })
    expect(await pds.rows('escrow_share', {}, ['did'])).toEqual([])
    expect(await pds.rows('web_document', {}, ['document'])).toEqual([{ document: documentOf() }])
    const hosting = await request(`${pds.url}/v1/did-web/hosting`, {
      headers: bearer(body.session_token),
      json: { enabled: true },
    })
    expect(hosting).toMatchObject({ status: 200, body: { enabled: true } })
  })

  test('makes one account, whoever brings it', async () => {
    const other = await begin(pds, 'bob')
    const { body } = await signingKeyFor(pds, other)
    const text = documentOf(DID, other, body.keyId)
    publish(text)
    expect(await send(text, other)).toMatchObject(refused(409, 'DID_ALREADY_EXISTS'))
    const own = documentOf('did:web:bob.web.test', other, body.keyId)
    publish(own, 'bob.web.test')
    expect(await send(own, other)).toMatchObject({ status: 200 })
  })

  test('with a path becomes an account that takes a handle, and comes back after it was deactivated', async () => {
    const carl = await begin(pds, 'carl')
    const did = `did:web:${HOST}:users:carl`
    const text = documentOf(did, carl, (await signingKeyFor(pds, carl)).body.keyId)
    web.publish(HOST, '/users/carl/did.json', text)
    expect((await send(text, carl)).status).toBe(200)
    pds.clock.advance({ days: 2 })
    const session = await askSession(pds, sessionRequest(pds, { did, device: carl.device }))
    const call = (nsid: string, init: object) =>
      request(`${pds.url}/xrpc/com.atproto.${nsid}`, { ...init, headers: bearer(session.body.accessJwt) })
    const answers = [
      await call('identity.updateHandle', { json: { handle: carl.handle } }),
      await call('server.deactivateAccount', { json: {} }),
      await call('server.activateAccount', { method: 'POST' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await call('server.checkAccountStatus', {})).body).toMatchObject({ activated: true, validDid: true })
    const described = await request(`${pds.url}/xrpc/com.atproto.repo.describeRepo?repo=${encodeURIComponent(did)}`)
    expect(described).toMatchObject({ status: 200, body: { handle: carl.handle, didDoc: { id: did } } })
  })
})
