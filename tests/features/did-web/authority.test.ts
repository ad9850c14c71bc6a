/** Who may sign for a did:web: the one device key of the document that its owner publishes. */
import { expect, test } from 'bun:test'
import { signingAuthority } from '../../../src/features/access/wallet-proofs/wallet-proofs.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import vector from '../../vectors/contract/did-web-ceremony-v1.json'
import { useWorld } from '../../support/world.ts'

const HOST = 'alice.web.test'
const DID = `did:web:${HOST}` as Did
/** The vector's documents are those of a host for which tests have no certificate. */
const moved = (text: string): string => text.replaceAll('alice.example.net', HOST)

const { pds, web } = useWorld({ web: [HOST], config: { availableUserDomains: ['pds.test'] } })

async function keysIn(document: string): Promise<string[] | string> {
  web.publish(HOST, '/.well-known/did.json', moved(document))
  const authority = await signingAuthority(pds.ctx, DID)
  return authority.ok ? authority.keys : authority.fault
}

test('it is the key that the vector names, however the document is spelled', async () => {
  expect(await keysIn(vector.publishedBytesMustEqual)).toEqual([vector.authorityKey])
  expect(await keysIn(vector.publishedButDifferentBytes)).toEqual([vector.authorityKey])
})

test('two device keys are none', async () => {
  expect(await keysIn(JSON.stringify(vector.duplicateDevice.document))).toEqual([])
})

/** Of the documents that a ceremony refuses: those whose device key cannot be relied on. */
const keyless = ['id-not-did-web', 'device-key-bare-point', 'device-fragment-relative', 'controller-wrong']
test.each(vector.reject.map(({ name, didWebDocument }) => [name, didWebDocument] as const))(
  'a document that a ceremony refuses (%s) grants nothing beyond its device key',
  async (name, document) => {
    expect(await keysIn(document)).toEqual(keyless.includes(name) ? [] : [vector.authorityKey])
  },
)

test('the document that this server serves grants nothing, and is not asked for', async () => {
  await keysIn(vector.publishedBytesMustEqual)
  await pds.plant('web_document', { did: DID, document: moved(vector.publishedBytesMustEqual) })
  await pds.damage('web_document', { did: DID }, { hosted_since: pds.clock.now() })
  const asked = web.requests.length
  expect(await keysIn(vector.publishedBytesMustEqual)).toEqual([])
  expect(web.requests.length).toBe(asked)
  await pds.damage('web_document', { did: DID }, { hosted_since: null })
  expect(await keysIn(vector.publishedBytesMustEqual)).toEqual([vector.authorityKey])
})

test('what is missing, ended or unreadable is told apart', async () => {
  for (const [status, fault] of [
    [404, 'not-found'],
    [410, 'deactivated'],
    [500, 'unreachable'],
  ] as const) {
    web.publish(HOST, '/.well-known/did.json', () => new Response(null, { status }))
    expect(await signingAuthority(pds.ctx, DID)).toEqual({ ok: false, fault })
  }
  for (const text of ['', 'null', '[]', '{}', '{"id":"did:web:other.test"}', '<html>'])
    expect(await keysIn(text)).toEqual([])
})
