import { expect, test } from 'bun:test'
import { lookUpHandle } from '../../../src/features/identity/identity/handle-resolution.ts'
import { resolveDid } from '../../../src/features/identity/identity/identity.ts'
import { signingAuthority } from '../../../src/features/access/wallet-proofs/wallet-proofs.ts'
import type { PlcDirectory } from '../../../src/platform/network/directory-client.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import authority from '../../vectors/plc-authority-v1.json'
import { request } from '../../support/clients/http.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const stranger = 'did:plc:ewvi7nxzyoun6zhxrhs64oiz' as Did

const { pds, dns, web } = useWorld({
  web: ['web.test', 'a.web.test', 'b.web.test', 'c.web.test', 'd.web.test', 'e.web.test'],
  config: { availableUserDomains: ['pds.test'] },
})
const alice = setUp(() => seedAccount(pds, 'alice.pds'))

const xrpc = (nsid: string, params: Record<string, string> = {}) =>
  request(`${pds.url}/xrpc/${nsid}?${new URLSearchParams(params)}`)
const resolveHandle = (handle: string) => xrpc('com.atproto.identity.resolveHandle', { handle })
const webDocument = (did: string, changes: object = {}) => ({ id: did, alsoKnownAs: [], service: [], ...changes })

test('a local handle resolves in any case, and only while its account is active', async () => {
  expect(await resolveHandle('Alice.PDS.test')).toMatchObject({ status: 200, body: { did: alice.did } })
  for (const state of [{ deactivated_at: 1 }, { takedown_ref: 'x' }]) {
    await pds.damage('account', { did: alice.did }, state)
    expect(await resolveHandle('alice.pds.test')).toMatchObject({
      status: 400,
      body: { error: 'HandleNotFound', message: 'Unable to resolve handle' },
    })
    await pds.damage('account', { did: alice.did }, { deactivated_at: null, takedown_ref: null })
  }
})

test('names under our domains are asked of nobody else', async () => {
  dns.setHandle('bob.pds.test', stranger)
  dns.setHandle('pds.test', stranger)
  for (const handle of ['bob.pds.test', 'pds.test'])
    expect(await resolveHandle(handle)).toMatchObject({ status: 400, body: { error: 'HandleNotFound' } })
  expect(dns.queries).not.toContain('_atproto.bob.pds.test')
})

test('a handle elsewhere resolves by DNS first, then by the web', async () => {
  dns.setHandle('a.web.test', stranger)
  web.publishHandle('a.web.test', 'did:plc:wrong')
  expect(await resolveHandle('a.web.test')).toMatchObject({ status: 200, body: { did: stranger } })
  web.publishHandle('b.web.test', `${stranger}\n<!-- more -->\n`)
  expect(await resolveHandle('b.web.test')).toMatchObject({ status: 200, body: { did: stranger } })
})

const unresolvableAnswers: [string, () => void][] = [
  ['two records that disagree', () => dns.setTexts('_atproto.c.web.test', `did=${stranger}`, 'did=did:plc:other')],
  ['two records that agree', () => dns.setTexts('_atproto.c.web.test', `did=${stranger}`, `did=${stranger}`)],
  ['a record that is no DID', () => dns.setTexts('_atproto.c.web.test', 'did=nonsense')],
  ['a record of something else', () => dns.setTexts('_atproto.c.web.test', 'v=spf1', `did:${stranger}`)],
  ['a page that is no DID', () => web.publishHandle('c.web.test', '<html>did:plc:x</html>')],
  [
    'a page that is not there',
    () => web.publish('c.web.test', '/.well-known/atproto-did', () => new Response(stranger, { status: 404 })),
  ],
  [
    'a page that is endless',
    () => web.publish('c.web.test', '/.well-known/atproto-did', () => new Response(`${stranger}\n`.repeat(1000))),
  ],
  [
    'a redirect to a private host',
    () => {
      dns.setAddresses('inside.test', '10.0.0.1')
      web.publish('c.web.test', '/.well-known/atproto-did', () => Response.redirect('https://inside.test/x', 302))
    },
  ],
]
for (const [name, publish] of unresolvableAnswers) {
  test(`a handle with ${name} does not resolve`, async () => {
    dns.setTexts('_atproto.c.web.test')
    web.publish('c.web.test', '/.well-known/atproto-did', () => new Response(null, { status: 404 }))
    publish()
    expect(await resolveHandle('c.web.test')).toMatchObject({
      status: 400,
      body: { error: 'InvalidRequest', message: 'Unable to resolve handle' },
    })
  })
}

test('the web still answers when no name server does', async () => {
  web.publishHandle('d.web.test', stranger)
  const broken = { ...dns, texts: () => Promise.reject(new Error('no name server answers')) }
  expect(await lookUpHandle({ resolver: broken, outbound: pds.ctx.outbound }, 'd.web.test' as Handle)).toBe(stranger)
})

test('malformed handles are refused before anything is asked', async () => {
  for (const handle of ['nodots', 'a..b', 'x'.repeat(300), '127.0.0.1', ''])
    expect((await resolveHandle(handle)).body.error).toBe('InvalidRequest')
})

test('a DID is resolved in both methods', async () => {
  expect((await xrpc('com.atproto.identity.resolveDid', { did: alice.did })).body.didDoc).toMatchObject({
    id: alice.did,
    alsoKnownAs: ['at://alice.pds.test'],
  })
  web.publishDidDocument('e.web.test', webDocument('did:web:e.web.test', { extra: 'kept' }))
  expect((await xrpc('com.atproto.identity.resolveDid', { did: 'did:web:e.web.test' })).body).toEqual({
    didDoc: webDocument('did:web:e.web.test', { extra: 'kept' }),
  })
})

const unresolvableDids: [string, string, number, string, () => void][] = [
  ['that nobody registered', stranger, 400, 'DidNotFound', () => undefined],
  [
    'of another method',
    'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme',
    400,
    'DidNotFound',
    () => undefined,
  ],
  ['of a path', 'did:web:a.web.test:users:x', 400, 'DidNotFound', () => undefined],
  ['whose page is missing', 'did:web:a.web.test', 400, 'DidNotFound', () => undefined],
  [
    'whose page says gone',
    'did:web:b.web.test',
    400,
    'DidDeactivated',
    () => web.publish('b.web.test', '/.well-known/did.json', () => new Response(null, { status: 410 })),
  ],
  [
    'whose page is another DID',
    'did:web:c.web.test',
    502,
    'UpstreamFailure',
    () => web.publishDidDocument('c.web.test', webDocument('did:web:other.test')),
  ],
  [
    'whose page is too large',
    'did:web:d.web.test',
    502,
    'UpstreamFailure',
    () => web.publishDidDocument('d.web.test', webDocument('did:web:d.web.test', { x: 'x'.repeat(70_000) })),
  ],
  [
    'whose host is private',
    'did:web:private.test',
    502,
    'UpstreamFailure',
    () => dns.setAddresses('private.test', '192.168.1.1'),
  ],
  ['whose host does not exist', 'did:web:nowhere.test', 502, 'UpstreamFailure', () => undefined],
]
for (const [name, did, status, error, publish] of unresolvableDids) {
  test(`a DID ${name} answers ${error}`, async () => {
    publish()
    expect(await xrpc('com.atproto.identity.resolveDid', { did })).toMatchObject({ status, body: { error } })
  })
}

test('an identity is its DID, its document, and its handle when both sides agree', async () => {
  for (const identifier of [alice.did, 'alice.pds.test']) {
    expect((await xrpc('com.atproto.identity.resolveIdentity', { identifier })).body).toMatchObject({
      did: alice.did,
      handle: 'alice.pds.test',
      didDoc: { id: alice.did },
    })
  }
  web.publishDidDocument('e.web.test', webDocument('did:web:e.web.test', { alsoKnownAs: ['at://alice.pds.test'] }))
  expect(
    (
      await request(`${pds.url}/xrpc/com.atproto.identity.refreshIdentity`, {
        json: { identifier: 'did:web:e.web.test' },
      })
    ).body,
  ).toMatchObject({ handle: 'handle.invalid' })
  expect(await xrpc('com.atproto.identity.resolveIdentity', { identifier: 'nobody.pds.test' })).toMatchObject({
    status: 400,
    body: { error: 'HandleNotFound' },
  })
})

test('a document is served from the cache for an hour, renewed behind the answer for a day, then fetched again', async () => {
  const did = 'did:web:web.test' as Did
  let version = 0
  web.publish('web.test', '/.well-known/did.json', () => Response.json(webDocument(did, { version: ++version })))
  const seen = async (options = {}) => {
    const resolution = await resolveDid(pds.ctx, did, options)
    return resolution.ok && resolution.document['version']
  }
  expect(await seen()).toBe(1)
  pds.clock.advance({ secs: 3599 })
  expect(await seen()).toBe(1)
  pds.clock.advance({ secs: 2 })
  expect(await seen()).toBe(1)
  // The second fetch began behind the last answer.
  expect(await Promise.all([seen({ live: true }), seen({ live: true })])).toEqual([3, 3])
  expect(await seen()).toBe(3)
  pds.clock.advance({ days: 1 })
  expect(await Promise.all([seen(), seen(), seen()])).toEqual([4, 4, 4])
  pds.clock.advance({ days: 2 })
  expect((await pds.runSweep('did-cache'))['deleted']).toBeGreaterThan(0)
})

test('a document that cannot be fetched again is served for its day and no longer', async () => {
  const did = 'did:web:a.web.test' as Did
  web.publishDidDocument('a.web.test', webDocument(did))
  expect(await resolveDid(pds.ctx, did)).toMatchObject({ ok: true })
  web.publish('a.web.test', '/.well-known/did.json', () => new Response(null, { status: 500 }))
  pds.clock.advance({ secs: 23 * 3600 })
  expect(await resolveDid(pds.ctx, did)).toMatchObject({ ok: true })
  pds.clock.advance({ secs: 2 * 3600 })
  expect(await resolveDid(pds.ctx, did)).toEqual({ ok: false, fault: 'unreachable' })
})

test('the keys that speak for a did:plc are those of the live head, and never the cached ones', async () => {
  for (const { name, log, authorised, notAuthorised } of authority.cases) {
    const plc = { auditLog: async () => log } as unknown as PlcDirectory
    const found = await signingAuthority({ ...pds.ctx, plc }, log[0]!.did as Did)
    const keys = found.ok ? found.keys : []
    expect([name, keys, keys.filter((key) => (notAuthorised as string[]).includes(key))]).toEqual([
      name,
      authorised,
      [],
    ])
  }
  expect(await signingAuthority(pds.ctx, stranger)).toEqual({ ok: false, fault: 'not-found' })
})

test('proofs that arrive together share one read of the log, which begins after each of them arrived', async () => {
  const { log } = authority.cases[0]!
  const reads: ((answer: unknown) => void)[] = []
  const plc = { auditLog: () => new Promise((resolve) => reads.push(resolve)) } as unknown as PlcDirectory
  const ctx = { ...pds.ctx, plc }
  const ask = () => signingAuthority(ctx, log[0]!.did as Did)
  const first = ask()
  await Promise.resolve()
  const later = [ask(), ask(), ask()]
  expect(reads).toHaveLength(1)
  reads[0]!([])
  expect(await first).toEqual({ ok: false, fault: 'not-found' })
  await new Promise((resolve) => setImmediate(resolve))
  expect(reads).toHaveLength(2)
  reads[1]!(log)
  for (const found of await Promise.all(later)) expect(found.ok).toBe(true)
})

test('the key that speaks for a did:web is the one device key of its live document', async () => {
  const did = 'did:web:web.test' as Did
  const multikey = alice.signingKey.slice('did:key:'.length)
  const device = { id: `${did}#device`, type: 'Multikey', controller: did, publicKeyMultibase: multikey }
  const keysWith = async (verificationMethod: object[]) => {
    web.publishDidDocument('web.test', webDocument(did, { verificationMethod }))
    const found = await signingAuthority(pds.ctx, did)
    return found.ok ? found.keys : found.fault
  }
  expect(await keysWith([device])).toEqual([alice.signingKey])
  await pds.plant('web_document', { did, document: '{}' })
  expect(await keysWith([device])).toEqual([alice.signingKey])
  await pds.damage('web_document', { did }, { hosted_since: pds.clock.now() })
  expect(await keysWith([device])).toEqual([])
  await pds.damage('web_document', { did }, { hosted_since: null })
  const powerless = [
    [],
    [device, device],
    [{ ...device, id: `${did}#atproto` }],
    [{ ...device, id: '#device' }],
    [{ ...device, type: 'JsonWebKey2020' }],
    [{ ...device, controller: 'did:web:other' }],
    [{ ...device, publicKeyMultibase: 'zzz' }],
  ]
  for (const methods of powerless) expect(await keysWith(methods)).toEqual([])
  web.publishDidDocument('web.test', webDocument('did:web:other.test', { verificationMethod: [device] }))
  expect(await signingAuthority(pds.ctx, did)).toMatchObject({ ok: true, keys: [] })
  web.publish('web.test', '/.well-known/did.json', () => new Response(null, { status: 410 }))
  expect(await signingAuthority(pds.ctx, did)).toEqual({ ok: false, fault: 'deactivated' })
  expect(
    await signingAuthority(pds.ctx, 'did:key:zDnaez8kbVd5xt55ju1WZpRCMJFGQ4dJi3zTgUoeReAbj9sfo' as Did),
  ).toMatchObject({
    ok: true,
    keys: [],
  })
})
