/** Keys of accounts that come from elsewhere: on the curve of the key that their identity named before. */
import { AtpAgent } from '@atproto/api'
import { expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatMultikey, type Curve } from '../../../src/protocol/keys.ts'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { moveAccount, returnHome, settleIn, verifiedRepo } from '../../support/clients/migration.ts'
import { MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { moveIn, stranger } from '../../support/clients/stranger.ts'
import { READER_DID, READER_METHOD, TokenReader } from '../../support/clients/token-reader.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const config = { signingKeyMasterKey: MASTER_KEY, rateLimit: { enabled: false } }
const { pds: one, plc, web, dns } = useWorld({ plc: true, web: [], config })
const two = setUp(() => startPds({ ...config, plcDirectoryUrl: plc.url, availableUserDomains: ['two.test'] }))

/** How a did:key begins. */
const prefixes: Record<Curve, string> = { p256: 'did:key:zDn', k256: 'did:key:zQ3s' }
const curves = ['p256', 'k256'] as const

const reserve = (pds: TestPds, input: object) => xrpc(pds, 'com.atproto.server.reserveSigningKey', { json: input })
const namedFor = async (account: TestAccount): Promise<string> =>
  (await account.call('com.atproto.identity.getRecommendedDidCredentials')).body.verificationMethods.atproto

test.each(curves)('an account that brings a DID with a %s key gets another one of that curve', async (curve) => {
  const mover = await stranger(one, curve)
  const account = await moveIn(one, mover, `mover-${curve}`)
  expect(await namedFor(account)).toStartWith(prefixes[curve])
  const { body } = await account.call(`com.atproto.server.getServiceAuth?aud=${READER_DID}&lxm=${READER_METHOD}`)
  expect(await new TokenReader(plc.url).read(body.token)).toBe(mover.did)
})

test.each(curves)(
  'a key that is promised to a DID with a %s key is of that curve, and becomes the key of the account',
  async (curve) => {
    const mover = await stranger(one, curve)
    const { body } = await reserve(one, { did: mover.did })
    expect(body.signingKey).toStartWith(prefixes[curve])
    expect(await reserve(one, { did: mover.did })).toMatchObject({ status: 200, body })
    expect(await namedFor(await moveIn(one, mover, `promised-${curve}`))).toBe(body.signingKey)
  },
)

test('identities that are made here have a P-256 key, and so has what is promised to nobody, or to an identity that names none', async () => {
  expect(await namedFor(await createAccount(one, 'native'))).toStartWith(prefixes.p256)
  const silent = await stranger(one, 'k256')
  await silent.publish({ verificationMethods: {} })
  for (const did of [undefined, silent.did, 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'did:web:nobody.test'])
    expect((await reserve(one, { did })).body.signingKey).toStartWith(prefixes.p256)
})

test('documents of did:web count, also those that name keys in the older way or a key of another kind', async () => {
  const { key } = await stranger(one, 'k256')
  const bare = 'zQYEBzXeuTM9UR3rfvNag6L3RNAs5pQZyYPsomTsgQhsxLdEgCrPTLgFna8yqCnxPpNT7DBk6Ym3dgPKNu86vt9GR'
  const methods: [string, string, Curve][] = [
    ['EcdsaSecp256k1VerificationKey2019', bare, 'k256'],
    ['Ed25519VerificationKey2020', 'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK', 'p256'],
    ['Multikey', 'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK', 'p256'],
    ['Multikey', formatMultikey(key.publicKey), 'k256'],
  ]
  for (const [i, [type, publicKeyMultibase, curve]] of methods.entries()) {
    const host = `carol${i}.web.test`
    const did = `did:web:${host}`
    dns.setAddresses(host, '127.0.0.1')
    web.publishDidDocument(host, {
      id: did,
      verificationMethod: [{ id: `${did}#atproto`, type, controller: did, publicKeyMultibase }],
    })
    expect((await reserve(one, { did })).body.signingKey).toStartWith(prefixes[curve])
  }
})

test.each(curves)('where the %s key of the account may change the identity, it does', async (curve) => {
  const mover = await stranger(one, curve)
  const account = await moveIn(one, mover, `rotating-${curve}`)
  await mover.publish({ rotationKeys: [mover.didKey, await namedFor(account)] })
  await account.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  const wanted = {
    token: await lastCode(one, account.email),
    alsoKnownAs: [`at://${account.handle}`, 'https://example.com'],
  }
  const { status, body } = await account.call('com.atproto.identity.signPlcOperation', { json: wanted })
  expect({ status, body }).toMatchObject({ status: 200 })
  expect(
    await account.call('com.atproto.identity.submitPlcOperation', { json: { operation: body.operation } }),
  ).toMatchObject({
    status: 200,
  })
  expect((await one.ctx.plc.state(mover.did))?.alsoKnownAs).toEqual(wanted.alsoKnownAs)
})

test('an account that came with a key of another curve than before goes on with it', async () => {
  const mover = await stranger(one, 'k256')
  await mover.publish({ verificationMethods: {} })
  const { body } = await reserve(one, { did: mover.did })
  await mover.publish({ verificationMethods: { atproto: mover.didKey } })
  const account = await moveIn(one, mover, 'settled')
  expect(await account.call('com.atproto.server.deactivateAccount', { json: {} })).toMatchObject({ status: 200 })
  expect(await account.call('com.atproto.server.activateAccount', { method: 'POST' })).toMatchObject({ status: 200 })
  expect(
    await account.call('com.atproto.repo.createRecord', {
      json: { repo: mover.did, collection: 'org.example.note', record: { text: 'signed' } },
    }),
  ).toMatchObject({ status: 200 })
  expect(await namedFor(account)).toBe(body.signingKey)
  expect(body.signingKey).toStartWith(prefixes.p256)
  const { body: token } = await account.call(`com.atproto.server.getServiceAuth?aud=${READER_DID}&lxm=${READER_METHOD}`)
  expect(await new TokenReader(plc.url).read(token.token)).toBe(mover.did)
})

test('an account that was born here, moved away and comes back gets a key of the curve that services know it by', async () => {
  const email = 'prodigal@example.com'
  const native = await createAccount(two, 'prodigal', { email, handle: 'prodigal.two.test' })
  const atTwo = new AtpAgent({ service: two.url })
  await atTwo.login({ identifier: native.did, password: PASSWORD })
  await atTwo.post({ text: 'before' })
  const first = await namedFor(native)

  // The other server gives keys on the other curve, as most do.
  const abroad = await stranger(two, 'k256')
  const signedAtTwo = async (wanted: object) => {
    await native.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
    return (
      await native.call('com.atproto.identity.signPlcOperation', {
        json: { token: await lastCode(two, email), ...wanted },
      })
    ).body.operation
  }
  const away = {
    verificationMethods: { atproto: abroad.didKey },
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.example' } },
  }
  await two.ctx.plc.submit(native.did as Did, await signedAtTwo(away))
  await atTwo.com.atproto.server.deactivateAccount({})
  const reader = new TokenReader(plc.url)
  expect(await reader.read(abroad.token({ iss: native.did, aud: READER_DID, lxm: READER_METHOD }))).toBe(native.did)

  const [named, again] = await Promise.all([namedFor(native), namedFor(native)])
  expect(named).toStartWith(prefixes.k256)
  expect(again).toBe(named)
  expect(await namedFor(native)).toBe(named)
  const { data: back } = await atTwo.com.atproto.identity.getRecommendedDidCredentials()
  await two.ctx.plc.submit(native.did as Did, await signedAtTwo(back))
  await atTwo.com.atproto.server.activateAccount()
  expect(await reader.hear(atTwo)).toBe(native.did)
  await atTwo.post({ text: 'after' })
  await verifiedRepo(atTwo, plc.url)
  expect(named).not.toBe(first)
})

test('an account that is only asleep keeps its key', async () => {
  const native = await createAccount(one, 'sleeper')
  const before = await namedFor(native)
  expect(await native.call('com.atproto.server.deactivateAccount', { json: {} })).toMatchObject({ status: 200 })
  expect(await namedFor(native)).toBe(before)
})

test('no key is promised to a DID while the directory cannot be asked about it', async () => {
  await using lost = await startPds({ plcDirectoryUrl: 'http://localhost:1', signingKeyMasterKey: MASTER_KEY })
  const did = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
  expect(await reserve(lost, { did })).toMatchObject({ status: 502 })
  await lost.restart({ plcDirectoryUrl: plc.url })
  const mover = await stranger(lost, 'k256')
  expect((await reserve(lost, { did: mover.did })).body.signingKey).toStartWith(prefixes.k256)
})

test('a service that remembers keys for a day reads the tokens of an account wherever it moves', async () => {
  const reader = new TokenReader(plc.url)
  const mover = await stranger(one, 'k256')
  const { did } = mover
  const before = mover.token({ aud: READER_DID, lxm: READER_METHOD })
  expect(await reader.read(before)).toBe(did)

  await moveIn(one, mover, 'nomad')
  const atOne = new AtpAgent({ service: one.url })
  await atOne.login({ identifier: did, password: PASSWORD })
  const { data: fromOne } = await atOne.com.atproto.server.getServiceAuth({ aud: READER_DID, lxm: READER_METHOD })
  expect(await reader.read(fromOne.token)).toBe(did)
  await settleIn(atOne)
  await verifiedRepo(atOne, plc.url)

  const atTwo = await moveAccount({
    from: atOne,
    to: two.url,
    handle: 'nomad.two.test',
    email: 'nomad@example.com',
    password: PASSWORD,
    mailedCode: () => lastCode(one, 'nomad@example.com'),
  })
  expect(await reader.hear(atTwo)).toBe(did)
  await atTwo.post({ text: 'from the second home' })
  await verifiedRepo(atTwo, plc.url)
  for (const old of [before, fromOne.token])
    expect(await thrownBy(reader.read(old))).toThrow('jwt signature does not match jwt issuer')

  await returnHome({ from: atTwo, to: atOne, mailedCode: () => lastCode(two, 'nomad@example.com') })
  expect(await reader.hear(atOne)).toBe(did)
  const consumer = new Consumer(one.url, { startCursor: 0, plcUrl: plc.url })
  await atOne.post({ text: 'at home' })
  await consumer.until((seen) => seen.some((event) => event.event === 'create' && event.record['text'] === 'at home'))
  await consumer.stop()
})
