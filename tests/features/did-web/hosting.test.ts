/**
 * did:web documents that this server serves for their owners: who decides, what is served to whom, and what it may not
 * open.
 */
import { afterEach, beforeAll, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { askSession, deviceKey, sessionRequest, walletSession } from '../../support/clients/wallet.ts'
import { arrive, askHost, method, pointAt, type WebHolder } from '../../support/clients/web-holder.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let dora: WebHolder

const { pds, dns, web } = useWorld({
  web: [],
  config: { availableUserDomains: ['pds.test'], rateLimit: { enabled: false } },
})
const alice = setUp(() => createAccount(pds, 'alice', { handle: 'alice.pds.test' }))
beforeAll(async () => {
  dora = await arrive({ pds, web, dns }, 'dora.web.test')
})
const events = setUp(() => Subscriber.open(pds.url))
afterEach(() => pds.ctx.background.settled())

const ask = (account: TestAccount, path: string, json: object) =>
  request(`${pds.url}/v1/did-web/${path}`, { json, headers: bearer(account.accessJwt) })
const host = (enabled: boolean, account: TestAccount = dora) => ask(account, 'hosting', { enabled })
const edit = (document: object, account: TestAccount = dora) => ask(account, 'document', { document })
const toPublish = (account: TestAccount = dora) =>
  request(`${pds.url}/v1/did-web/document`, { headers: bearer(account.accessJwt) })
const identityEvents = (did: string) =>
  events.messages
    .filter(({ type, body }) => type === '#identity' && body['did'] === did)
    .map(({ body }) => body['handle'])
/** After which every event before it has arrived. */
let marks = 0
const allSeen = async () => {
  const seen = identityEvents(alice.did).length
  await alice.call('com.atproto.identity.updateHandle', { json: { handle: `alice-${marks++}.pds.test` } })
  await events.untilSeen(() => identityEvents(alice.did).length > seen)
}
const status = async (domain: string) => (await askHost(pds, domain)).status
const tlsCheck = async (domain: string) => (await request(`${pds.url}/tls-check?domain=${domain}`)).status

test('the server description offers the hosting of did:web documents', async () => {
  const { body } = await xrpc(pds, 'com.atproto.server.describeServer')
  expect(body.custos.capabilities).toContain('didWebHosting')
})

test('nothing is served before the owner says so, nor is a certificate ordered', async () => {
  expect(await askHost(pds, dora.host)).toMatchObject({ status: 404, body: '' })
  expect(await tlsCheck(dora.host)).toBe(400)
})

test('the owner turns it on and off, without an event, and it counts at once', async () => {
  await allSeen()
  const seen = identityEvents(dora.did).length
  expect(await host(true)).toMatchObject({ status: 200, body: { enabled: true } })
  const served = await askHost(pds, dora.host)
  expect([
    served.status,
    served.headers.get('content-type'),
    served.headers.get('access-control-allow-origin'),
  ]).toEqual([200, 'application/did+json', '*'])
  expect(served.body).toEqual(dora.document)
  expect(await tlsCheck(dora.host)).toBe(200)
  expect(await host(true)).toMatchObject({ status: 200 })
  expect(await host(false)).toMatchObject({ status: 200, body: { enabled: false } })
  expect([await status(dora.host), await tlsCheck(dora.host)]).toEqual([404, 400])
  expect(await host(false)).toMatchObject({ status: 200 })
  await allSeen()
  expect(identityEvents(dora.did).length).toBe(seen)
})

test('a session that ends while the published document is fetched begins no hosting', async () => {
  const { accessJwt, refreshJwt } = await logIn(pds, dora, PASSWORD)
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  web.publish(dora.host, '/.well-known/did.json', async () => {
    asked.resolve()
    await answered.promise
    return Response.json(dora.document)
  })
  const begun = host(true, { ...dora, accessJwt })
  await asked.promise
  const ended = await request(`${pds.url}/xrpc/com.atproto.server.deleteSession`, {
    method: 'POST',
    headers: bearer(refreshJwt),
  })
  expect(ended.status).toBe(200)
  answered.resolve()
  expect((await begun).status).toBe(401)
  expect(await status(dora.host)).toBe(404)
  web.publishDidDocument(dora.host, dora.document)
})

/** Two requests begin hosting at once. Calls `meanwhile` after one of them has, before the other has its document. */
async function hostedTwice(meanwhile: () => Promise<unknown>) {
  const fetches = [0, 1].map(() => ({
    asked: Promise.withResolvers<void>(),
    answered: Promise.withResolvers<void>(),
  })) as [Fetch, Fetch]
  let requests = 0
  web.publish(dora.host, '/.well-known/did.json', async () => {
    const held = fetches[requests++]
    held?.asked.resolve()
    await held?.answered.promise
    return Response.json(dora.document)
  })
  const [first, second] = fetches
  const begun = host(true)
  await first.asked.promise
  const slow = host(true)
  // A node fetches a document once at a time. The request is there by the time that another one is answered.
  await toPublish()
  await toPublish()
  first.answered.resolve()
  expect((await begun).status).toBe(200)
  await second.asked.promise
  await meanwhile()
  second.answered.resolve()
  const { status: code } = await slow
  await pds.ctx.background.settled()
  web.publishDidDocument(dora.host, dora.document)
  return code
}
type Fetch = Record<'asked' | 'answered', PromiseWithResolvers<void>>

test('of two requests to begin hosting, the slower one leaves what the owner has decided since', async () => {
  const edited = { ...dora.document, alsoKnownAs: ['at://dora.pds.test', 'https://edited.example'] }
  const editOnce = async () => expect((await edit(edited)).status).toBe(200)
  expect(await hostedTwice(editOnce)).toBe(200)
  expect((await askHost(pds, dora.host)).body).toEqual(edited)
  await host(false)
  expect(
    await hostedTwice(async () => {
      await editOnce()
      await host(false)
    }),
  ).toBe(400)
  expect(await status(dora.host)).toBe(404)
  expect((await toPublish()).body.document).toEqual(edited)
})

test('the host that was asked for is read as browsers and proxies write it', async () => {
  await host(true)
  for (const spelling of ['DORA.web.test', 'dora.web.test:443', 'dora.web.test:80'])
    expect([spelling, await status(spelling)]).toEqual([spelling, 200])
  for (const other of ['dora.web.test:8443', 'x.dora.web.test', 'web.test', 'dora.web.test.evil.example'])
    expect([other, await status(other)]).toEqual([other, 404])
  const forwarded = { headers: { 'x-forwarded-host': 'dora.web.test, inner.example' } }
  expect((await request(`${pds.url}/.well-known/did.json`, forwarded)).body.id).toBe(dora.did)
  expect((await askHost(pds, dora.host, { method: 'POST' })).status).toBe(405)
  const head = await askHost(pds, dora.host, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type'), head.body]).toEqual([200, 'application/did+json', ''])
  // The server's own document comes first, whatever account there is.
  expect((await request(`${pds.url}/.well-known/did.json`)).body.id).toBe(pds.ctx.config.serverDid)
})

test('an unknown host, an account that is not active, and one without hosting get the same answer', async () => {
  await host(true)
  const unknown = await askHost(pds, 'nobody.web.test')
  const withoutDate = ({ headers }: typeof unknown) => [...headers].filter(([name]) => name !== 'date')
  const asUnknown = async () => {
    const answer = await askHost(pds, dora.host)
    expect({ status: answer.status, body: answer.body, headers: withoutDate(answer) }).toEqual({
      status: 404,
      body: '',
      headers: withoutDate(unknown),
    })
    expect(await tlsCheck(dora.host)).toBe(400)
  }
  const takedown = (applied: boolean) =>
    xrpc(pds, 'com.atproto.admin.updateSubjectStatus', {
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: dora.did }, takedown: { applied } },
      headers: bearer(ADMIN_TOKEN),
    })
  await takedown(true)
  await asUnknown()
  await takedown(false)
  dora = { ...dora, ...(await logIn(pds, dora, PASSWORD)) }
  expect(await status(dora.host)).toBe(200)
  await dora.call('com.atproto.server.deactivateAccount', { json: {} })
  await asUnknown()
  expect((await dora.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  await host(false)
  await asUnknown()
})

test('an account whose domain points here goes on after a deactivation, with the document that is stored here', async () => {
  await host(true)
  pointAt(pds, web, dora.host)
  const activate = () => dora.call('com.atproto.server.activateAccount', { method: 'POST' })
  const validDid = async () => (await dora.call('com.atproto.server.checkAccountStatus')).body.validDid
  const archive = new Uint8Array(
    await (await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${dora.did}`)).arrayBuffer(),
  )
  await dora.call('com.atproto.server.deactivateAccount', { json: {} })
  expect([await status(dora.host), await validDid()]).toEqual([404, true])
  // What else asks what the identity says takes the stored document too.
  const headers = { 'content-type': 'application/vnd.ipld.car' }
  expect(await dora.call('com.atproto.repo.importRepo', { method: 'POST', body: archive, headers })).toMatchObject({
    status: 200,
  })
  expect(await dora.call('com.atproto.identity.updateHandle', { json: { handle: dora.handle } })).toMatchObject({
    status: 200,
  })
  // Nobody else is told of it.
  expect((await xrpc(pds, `com.atproto.identity.resolveDid?did=${dora.did}`)).status).toBe(400)
  expect(await activate()).toMatchObject({ status: 200 })
  expect([await status(dora.host), await validDid()]).toEqual([200, true])
  expect((await xrpc(pds, `com.atproto.identity.resolveDid?did=${dora.did}`)).body.didDoc).toEqual(dora.document)
})

test('a stored document that names another server or key, or is not served here, activates nothing', async () => {
  await host(true)
  pointAt(pds, web, dora.host)
  await dora.call('com.atproto.server.deactivateAccount', { json: {} })
  const activate = () => dora.call('com.atproto.server.activateAccount', { method: 'POST' })
  const [service] = dora.document.service
  const strangers = method(dora.did, 'atproto', deviceKey().did)
  for (const [change, message] of [
    [{ service: [{ ...service, serviceEndpoint: 'https://other.test' }] }, /service endpoint/],
    [{ verificationMethod: [strangers] }, /verification method/],
  ] as const) {
    await edit({ ...dora.document, ...change })
    expect(await activate()).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } })
  }
  await edit(dora.document)
  await host(false)
  expect(await activate()).toMatchObject({ status: 400, body: { message: 'Could not resolve DID' } })
  web.publishDidDocument(dora.host, dora.document)
  expect(await activate()).toMatchObject({ status: 200 })
})

test('an edit is served, and tells the network to look again', async () => {
  await host(true)
  pointAt(pds, web, dora.host)
  await allSeen()
  const seen = identityEvents(dora.did).length
  const edited = { ...dora.document, alsoKnownAs: ['at://dora.pds.test', 'https://dora.example'], note: 'kept' }
  expect(await edit(edited)).toMatchObject({ status: 200, body: {} })
  expect((await askHost(pds, dora.host)).body).toEqual(edited)
  await events.untilSeen(() => identityEvents(dora.did).length > seen)
  expect(identityEvents(dora.did).slice(seen)).toEqual([undefined])
  expect((await xrpc(pds, `com.atproto.identity.resolveDid?did=${dora.did}`)).body.didDoc).toEqual(edited)
  expect((await request(`${pds.url}/v1/dids/${dora.did}`)).body).toEqual(edited)
})

test('an edit loses nothing that the document names for permissioned data', async () => {
  const key = method(dora.did, 'atproto_space', dora.device.did)
  const service = { id: `${dora.did}#atproto_space_host`, type: 'AtprotoSpaceHost', serviceEndpoint: 'https://s.test' }
  const { document } = dora
  const whole = {
    ...document,
    verificationMethod: [...document.verificationMethod, key],
    service: [...document.service, service],
  }
  expect((await edit(whole)).status).toBe(200)
  for (const [name, change] of [
    ['atproto_space', { verificationMethod: document.verificationMethod }],
    ['atproto_space_host', { service: document.service }],
    ['atproto_space', { verificationMethod: 'none' }],
  ] as const)
    expect(await edit({ ...whole, ...change })).toMatchObject({
      status: 400,
      body: { error: { message: `The document lacks ${name}, which the identity names` } },
    })
  const other = { ...service, id: '#atproto_space_host', serviceEndpoint: 'https://other.test' }
  expect((await edit({ ...whole, service: [...document.service, other] })).status).toBe(200)
  expect((await askHost(pds, dora.host)).body.service).toEqual([...document.service, other])
  // Who wants to be without them publishes that, and has it served again.
  await host(false)
  web.publishDidDocument(dora.host, document)
  await host(true)
  pointAt(pds, web, dora.host)
  expect((await edit(document)).status).toBe(200)
})

test('an edit is refused if it is not the document of the account, is too large, or is not served here', async () => {
  await host(true)
  const before = (await askHost(pds, dora.host)).body
  const invalid = { status: 400, body: { error: { code: 'InvalidRequest' } } }
  const { id: _, ...nameless } = before
  for (const document of [
    nameless,
    { ...before, id: 'did:web:other.test' },
    { ...before, id: [dora.did] },
    { ...before, x: 'x'.repeat(65_536) },
  ])
    expect(await edit(document)).toMatchObject(invalid)
  for (const body of [{}, { document: 'text' }, { document: null }, { document: [before] }])
    expect((await ask(dora, 'document', body)).status).toBe(422)
  expect((await ask(dora, 'document', { document: { ...before, x: 'x'.repeat(200_000) } })).status).toBe(413)
  await host(false)
  expect(await edit(before)).toMatchObject(invalid)
  await host(true)
  expect((await askHost(pds, dora.host)).body).toEqual(before)
})

test('a did:plc has nothing to host, edit or publish', async () => {
  const invalid = { status: 400, body: { error: { code: 'InvalidRequest' } } }
  expect(await host(true, alice)).toMatchObject(invalid)
  expect(await host(false, alice)).toMatchObject(invalid)
  expect(await edit({ id: alice.did }, alice)).toMatchObject(invalid)
  expect(await toPublish(alice)).toMatchObject(invalid)
})

test('only the owner decides: no stranger, app password or other account', async () => {
  const { body } = await dora.call('com.atproto.server.createAppPassword', {
    json: { name: 'phone', privileged: true },
  })
  const phone = await logIn(pds, dora, body.password)
  for (const path of ['hosting', 'document']) {
    expect((await request(`${pds.url}/v1/did-web/${path}`, { json: { enabled: true } })).status).toBe(401)
    expect((await ask(phone, path, { enabled: true })).status).toBe(401)
  }
  expect((await toPublish(phone)).status).toBe(401)
  const wallet = bearer(await walletSession(pds, dora.did))
  expect((await request(`${pds.url}/v1/did-web/hosting`, { json: { enabled: true }, headers: wallet })).status).toBe(
    200,
  )
})

test('a hosted document opens no session, whatever keys are written into it; one that its owner publishes does', async () => {
  const mallory = { ...dora, device: deviceKey() }
  await host(true)
  pointAt(pds, web, dora.host)
  // Whoever has a session writes a key of their own into the document.
  await edit({ ...dora.document, verificationMethod: [method(dora.did, 'device', mallory.device.did)] })
  expect((await askHost(pds, dora.host)).body.verificationMethod).toHaveLength(1)
  const asked = web.requests.length
  const refused = { status: 401, body: { error: { code: 'AUTHENTICATION_REQUIRED' } } }
  await pds.ctx.background.settled()
  expect(await askSession(pds, sessionRequest(pds, mallory))).toMatchObject(refused)
  expect(web.requests.slice(asked).filter((place) => place.startsWith(dora.host))).toEqual([])
  await host(false)
  // The domain still points here, where nothing is served now.
  expect(await askSession(pds, sessionRequest(pds, dora))).toMatchObject({
    status: 404,
    body: { error: { code: 'DidNotFound' } },
  })
  web.publishDidDocument(dora.host, dora.document)
  expect(await askSession(pds, sessionRequest(pds, dora))).toMatchObject({ status: 200, body: { did: dora.did } })
})

test('a document that was served here while its keys were being read opens no session either', async () => {
  const mallory = { ...dora, device: deviceKey() }
  let isFirst = true
  web.publish(dora.host, '/.well-known/did.json', async () => {
    if (!isFirst) return new Response(null, { status: 404 })
    isFirst = false
    await host(true)
    await edit({ ...dora.document, verificationMethod: [method(dora.did, 'device', mallory.device.did)] })
    const { body } = await askHost(pds, dora.host)
    await host(false)
    return Response.json(body)
  })
  expect(await askSession(pds, sessionRequest(pds, mallory))).toMatchObject({
    status: 401,
    body: { error: { code: 'AUTHENTICATION_REQUIRED' } },
  })
  web.publishDidDocument(dora.host, dora.document)
  expect(await askSession(pds, sessionRequest(pds, dora))).toMatchObject({ status: 200 })
  await host(true)
  await edit(dora.document)
  // A cache must not go on with it once the owner has it served here no longer.
  expect((await askHost(pds, dora.host)).headers.get('cache-control')).toBe('no-store')
  await host(false)
})

test('the holder gets a mail when hosting begins and when the document changes, and the log says all of it', async () => {
  await host(false)
  await pds.runSteps()
  const before = pds.mails.length
  const logged = pds.log.length
  await host(true)
  await edit(dora.document)
  await host(false)
  await host(false)
  await pds.runSteps()
  expect(pds.mails.slice(before).map(({ to, subject }) => [to, subject.split(' (')[0]])).toEqual([
    [dora.email, 'The document of your identity is now served here'],
    [dora.email, 'The document of your identity was changed'],
  ])
  expect(pds.log.slice(logged).flatMap(({ message }) => (/identity document/.test(message) ? [message] : []))).toEqual([
    'hosting of the identity document begun',
    'identity document edited',
    'hosting of the identity document ended',
  ])
})

test('hosting begins with what the owner publishes at that moment, or else with what was stored', async () => {
  await host(false)
  const newer = { ...dora.document, alsoKnownAs: ['at://dora.pds.test', 'https://newer.example'] }
  web.publishDidDocument(dora.host, newer)
  await host(true)
  expect((await askHost(pds, dora.host)).body).toEqual(newer)
  await host(false)
  pointAt(pds, web, dora.host)
  await host(true)
  expect((await askHost(pds, dora.host)).body).toEqual(newer)
  await host(false)
  web.publishDidDocument(dora.host, dora.document)
})

test('without a document there is nothing to turn on', async () => {
  const erin = await arrive({ pds, web, dns }, 'erin.web.test')
  await pds.lose('web_document', { did: erin.did })
  dns.setAddresses('erin.web.test')
  expect(await host(true, erin)).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  expect(await toPublish(erin)).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } })
  expect(await host(false, erin)).toMatchObject({ status: 200, body: { enabled: false } })
})

test('a did:web for which no request asks, because it spells its host otherwise, is not served', async () => {
  for (const name of ['Fay.web.test', 'fern.web.test%3A443']) {
    const fay = await arrive({ pds, web, dns }, name.toLowerCase().replace('%3a443', ''), { did: `did:web:${name}` })
    const refused = await host(true, fay)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
    expect(refused.body.error.message).toContain('in lower case and without a usual port')
    expect(await status(fay.host)).toBe(404)
    // Otherwise its own document would open no session, although it is what its owner publishes.
    expect((await askSession(pds, sessionRequest(pds, fay))).status).toBe(200)
  }
})

test('whoever moves the domain away is told which files to publish, and where', async () => {
  await host(true)
  const { status: code, headers, body } = await toPublish()
  expect([code, headers.get('access-control-allow-origin')]).toEqual([200, null])
  expect(body).toMatchObject({ did: dora.did, hosted: true, document: dora.document })
  expect(body.publish).toEqual([
    {
      url: 'https://dora.web.test/.well-known/did.json',
      contentType: 'application/did+json',
      content: JSON.stringify(dora.document),
    },
  ])
  // The domain may be the handle as well.
  dns.setHandle('dora.web.test', dora.did)
  web.publishDidDocument(dora.host, { ...dora.document, alsoKnownAs: ['at://dora.web.test'] })
  expect((await dora.call('com.atproto.identity.updateHandle', { json: { handle: 'dora.web.test' } })).status).toBe(200)
  const moved = (await toPublish()).body.publish
  expect(moved[1]).toEqual({
    url: 'https://dora.web.test/.well-known/atproto-did',
    contentType: 'text/plain',
    content: dora.did,
  })
  // What is published as told works without this server.
  await host(false)
  for (const { url, content } of moved) web.publish('dora.web.test', new URL(url).pathname, content as string)
  dns.setTexts('_atproto.dora.web.test')
  expect((await askSession(pds, sessionRequest(pds, dora))).status).toBe(200)
})

test('a refresh tells the network of a changed document once, and of an unchanged one never', async () => {
  await host(false)
  web.publishDidDocument(dora.host, dora.document)
  const refresh = () => xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier: dora.did } })
  await refresh()
  await allSeen()
  const seen = identityEvents(dora.did).length
  await Promise.all(Array.from({ length: 5 }, refresh))
  await allSeen()
  expect(identityEvents(dora.did).length).toBe(seen)
  web.publishDidDocument(dora.host, { ...dora.document, alsoKnownAs: ['at://dora.web.test', 'https://x.example'] })
  await Promise.all(Array.from({ length: 5 }, refresh))
  await allSeen()
  expect(identityEvents(dora.did).slice(seen)).toEqual(['dora.web.test'])
  web.publishDidDocument(dora.host, { ...dora.document, alsoKnownAs: ['at://alice-0.pds.test'] })
  await refresh()
  await allSeen()
  expect(identityEvents(dora.did).slice(seen)).toEqual(['dora.web.test', undefined])
})

test('a deleted account is served no longer', async () => {
  const fred = await arrive({ pds, web, dns }, 'fred.web.test')
  await host(true, fred)
  expect(await status(fred.host)).toBe(200)
  await xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: fred.did }, headers: bearer(ADMIN_TOKEN) })
  expect([await status(fred.host), await tlsCheck(fred.host)]).toEqual([404, 400])
  expect((await request(`${pds.url}/v1/dids/${fred.did}`)).status).toBe(404)
})

test('the document of any DID is given to wallets, from here or from the directory', async () => {
  expect((await request(`${pds.url}/v1/dids/${alice.did}`)).body).toMatchObject({ id: alice.did })
  expect(await request(`${pds.url}/v1/dids/alice.pds.test`)).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_CLAIM' } },
  })
  for (const unknown of [
    'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa',
    'did:plc:short',
    'did:web:nobody.example',
    'did:key:z',
    'did:',
  ])
    expect([unknown, await request(`${pds.url}/v1/dids/${unknown}`)]).toMatchObject([
      unknown,
      { status: 404, body: { error: { code: 'NOT_FOUND' } } },
    ])
})
