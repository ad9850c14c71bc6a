/** Service tokens with which an account arrives: which of them are taken, and when the directory is asked. */
import { beforeAll, expect, spyOn, test } from 'bun:test'
import { verifyServiceToken } from '../../../src/features/access/service-auth/service-tokens.ts'
import { putDidDocument } from '../../../src/features/identity/identity/did-document-store.ts'
import type { DidDocument } from '../../../src/protocol/did-document.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import vector from '../../vectors/contract/service-auth-v1.json'
import { useWorld } from '../../support/world.ts'

const ISSUER = vector.issuerDid as Did
const METHOD = 'com.atproto.server.createAccount'
/** The vector accepts a token that names no method. The reference refuses it, and so does this server. */
const METHODLESS = 'no-lxm'

const { pds } = useWorld({ config: { serverDid: vector.serverDid as Did } })
beforeAll(() => {
  pds.clock.jump({ secs: vector.now - Math.floor(Date.now() / 1000) })
})

const documentWith = (key: string): DidDocument => ({
  id: ISSUER,
  verificationMethod: [
    { id: `${ISSUER}#atproto`, type: 'Multikey', controller: ISSUER, publicKeyMultibase: key.slice('did:key:'.length) },
  ],
})

/** What is cached of the issuer, and what the directory would say. */
async function verify(token: string, cached: string, published = cached) {
  await putDidDocument(pds.ctx.db, documentWith(cached), pds.clock.now())
  using asked = spyOn(pds.ctx.plc, 'document')
  asked.mockImplementation(async (did) => (did === ISSUER ? documentWith(published) : null))
  const outcome = await verifyServiceToken(pds.ctx, token, { lxm: METHOD }).then(
    ({ iss }) => iss,
    (error: { status: number; name: string }) => `${error.status} ${error.name}`,
  )
  return { outcome, fetches: asked.mock.calls.filter(([did]) => did === ISSUER).length }
}

test.each(vector.accept)('$name is taken, without asking the directory', async ({ name, token, atprotoKey }) => {
  const expected = name === METHODLESS ? '401 BadJwtLexiconMethod' : ISSUER
  expect(await verify(token, atprotoKey)).toEqual({ outcome: expected, fetches: 0 })
})

test.each(vector.reject)('$name is refused', async ({ token, atprotoKey }) => {
  expect((await verify(token, atprotoKey)).outcome).toStartWith('401 ')
})

test('a key that the document no longer names causes one look at the directory, and counts if it is there', async () => {
  const { token, atprotoKey: old } = vector.reject.find(({ name }) => name === 'fossil-key')!
  expect(await verify(token, old)).toEqual({ outcome: '401 BadJwtSignature', fetches: 1 })
  const { token: good, atprotoKey: current } = vector.accept[1]!
  expect(await verify(good, old, current)).toEqual({ outcome: ISSUER, fetches: 1 })
})

test('a token is good until the second at which it expires, and not then', async () => {
  const { token, atprotoKey } = vector.accept[0]!
  await pds.restart()
  pds.clock.jump({ secs: 3600 - 60 })
  expect((await verify(token, atprotoKey)).outcome).toBe(ISSUER)
  pds.clock.jump({ secs: 60 })
  expect((await verify(token, atprotoKey)).outcome).toBe('401 JwtExpired')
})
