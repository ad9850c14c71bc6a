import { expect, test } from 'bun:test'
import keys from '../../tests/vectors/keys.json'
import {
  claimedHandle,
  didWebOfHost,
  didWebUrl,
  parseDidDocument,
  pdsEndpoint,
  renderDidDocument,
  serviceEndpoint,
  publishedSigningKey,
  verificationKey,
} from './did-document.ts'
import type { Did } from './identifiers.ts'

const did = 'did:plc:ewvi7nxzyoun6zhxrhs64oiz' as Did
const [device, , repo] = keys.keys
const multikey = (id: string, key = repo!.didKey) => ({
  id,
  type: 'Multikey',
  controller: did,
  publicKeyMultibase: key.slice('did:key:'.length),
})
const pds = { id: '#atproto_pds', type: 'AtprotoPersonalDataServer', serviceEndpoint: 'https://pds.test' }
const document = (members: object) => parseDidDocument({ id: did, ...members }, did)!

test('a document answers for its key, its service and its name', () => {
  const found = document({
    alsoKnownAs: ['https://x.test', 'at://Alice.test'],
    verificationMethod: [multikey(`${did}#other`, device!.didKey), multikey(`${did}#atproto`)],
    service: [pds],
  })
  expect(publishedSigningKey(found)).toBe(repo!.didKey)
  expect(verificationKey(found, 'other')).toBe(device!.didKey)
  expect(pdsEndpoint(found)).toBe('https://pds.test')
  expect(claimedHandle(found)).toBe('alice.test' as never)
})

test('an empty document answers for nothing', () => {
  const found = document({})
  expect([publishedSigningKey(found), pdsEndpoint(found), claimedHandle(found), serviceEndpoint(found, 'x')]).toEqual([
    null,
    null,
    null,
    null,
  ])
})

test('ids are compared whole, as a fragment or in full', () => {
  expect(publishedSigningKey(document({ verificationMethod: [multikey('#atproto')] }))).toBe(repo!.didKey)
  for (const id of ['atproto', `${did}x#atproto`, 'did:plc:other#atproto', '#atproto2', 'x#atproto']) {
    expect(publishedSigningKey(document({ verificationMethod: [multikey(id)] }))).toBeNull()
  }
})

test('keys of the older types carry a bare point', () => {
  const bare = {
    ...multikey('#atproto'),
    type: 'EcdsaSecp256r1VerificationKey2019',
    publicKeyMultibase: repo!.bareMultibase,
  }
  expect(publishedSigningKey(document({ verificationMethod: [bare] }))).toBe(repo!.didKey)
  for (const wrong of [
    { type: 'Ed25519VerificationKey2020' },
    { type: 'Multikey' },
    { publicKeyMultibase: undefined },
    { publicKeyMultibase: 'zzz' },
  ]) {
    expect(publishedSigningKey(document({ verificationMethod: [{ ...bare, ...wrong }] }))).toBeNull()
  }
})

test('an endpoint is a web address, and of the type asked for', () => {
  for (const wrong of [
    { serviceEndpoint: 'ftp://x' },
    { serviceEndpoint: 'https://' },
    { serviceEndpoint: {} },
    { type: 'Other' },
  ]) {
    expect(pdsEndpoint(document({ service: [{ ...pds, ...wrong }] }))).toBeNull()
  }
})

test('only the document of the DID that was asked for is read', () => {
  const bad: unknown[] = [
    null,
    [],
    'x',
    {},
    { id: 'did:plc:other' },
    { id: did, alsoKnownAs: 'x' },
    { id: did, alsoKnownAs: [1] },
    { id: did, service: [{}] },
    { id: did, verificationMethod: [null] },
    { id: did, verificationMethod: [{ ...multikey('#a'), publicKeyMultibase: 5 }] },
  ]
  expect(bad.filter((value) => parseDidDocument(value, did) !== null)).toEqual([])
  expect(parseDidDocument({ id: did, extra: [1] }, did)).toEqual({ id: did, extra: [1] })
})

test('own entries are rendered first, the others by name', () => {
  const rendered = renderDidDocument(did, {
    rotationKeys: [],
    alsoKnownAs: [],
    verificationMethods: { b: repo!.didKey, atproto: repo!.didKey, a: repo!.didKey },
    services: {
      z: { type: 'Z', endpoint: 'https://z.test' },
      atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://pds.test' },
    },
  })
  expect(rendered.verificationMethod?.map(({ id }) => id)).toEqual([`${did}#atproto`, `${did}#a`, `${did}#b`])
  expect(rendered.service?.map(({ id }) => id)).toEqual(['#atproto_pds', '#z'])
  expect(parseDidDocument(rendered, did)).toEqual(rendered)
})

const webUrls: [string, string | null][] = [
  ['did:web:a.test', 'https://a.test/.well-known/did.json'],
  ['did:web:a.test%3A8443', 'https://a.test:8443/.well-known/did.json'],
  ['did:web:localhost%3A3000', 'http://localhost:3000/.well-known/did.json'],
  ['did:web:a.test:users:bob', 'https://a.test/users/bob/did.json'],
  ['did:web:a.test:..:bob', null],
  ['did:web:a.test:x%2Fy', null],
  ['did:web:a.test%2Fpath', null],
  ['did:web:user%40a.test', null],
  ['did:web:a.test%3Fq', null],
  ['did:web:a.test%', null],
  ['did:web:', null],
  ['did:plc:x', null],
]
for (const [text, url] of webUrls) {
  test(`${text} lives at ${url}`, () => {
    expect(didWebUrl(text as Did)?.href ?? null).toBe(url)
  })
}

test('a host is a did:web', () => {
  expect(didWebOfHost('PDS.test:8443')).toBe('did:web:pds.test%3A8443' as Did)
  expect(didWebOfHost('not a host')).toBeNull()
})
