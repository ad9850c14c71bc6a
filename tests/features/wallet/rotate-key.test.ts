/** A new key for the repository, signed into the identity by the wallet. */
import { expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { request } from '../../support/clients/http.ts'
import { startFaultyLine } from '../../support/faults/faulty-line.ts'
import { startPds } from '../../support/servers/pds.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { useWorld } from '../../support/world.ts'

const config = { rateLimit: { enabled: false }, signingKeyMasterKey: new Secret(new Uint8Array(32).fill(7)) }

const { pds, plc } = useWorld({ plc: true, config })

const stateOf = async (did: string) => (await request(`${plc.url}/${did}/data`)).body

test('the repository is signed with a new key, which takes the place of the old one', async () => {
  using alice = await walletHolder(pds, plc.url, 'alice')
  const before = await stateOf(alice.account.did)
  const out = await alice.user.do(['rotate-key'])
  const after = await stateOf(alice.account.did)
  expect(out).toContain(after.verificationMethods.atproto)
  expect(after.verificationMethods.atproto).not.toBe(before.verificationMethods.atproto)
  expect(after.rotationKeys[0]).toBe(before.rotationKeys[0])
  expect(after.rotationKeys).toContain(after.verificationMethods.atproto)
  expect(after.rotationKeys).not.toContain(before.verificationMethods.atproto)
  expect({ ...after, rotationKeys: 0, verificationMethods: 0 }).toEqual({
    ...before,
    rotationKeys: 0,
    verificationMethods: 0,
  })
  expect((await alice.user.contents()).unfinished).toBeNull()

  // And once more, from the session that is kept.
  await alice.user.do(['rotate-key'])
  expect((await stateOf(alice.account.did)).rotationKeys).toHaveLength(after.rotationKeys.length)
})

test('a rotation that the directory did not hear of is finished by the next command', async () => {
  await using line = await startFaultyLine(plc.url)
  await using far = await startPds({ ...config, plcDirectoryUrl: line.url })
  using bob = await walletHolder(far, plc.url, 'bob')
  await bob.user.do(['sign-in'])
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  expect((await bob.user.run(['rotate-key'])).code).toBe(1)
  const { unfinished } = await bob.user.contents()
  expect(unfinished).toMatchObject({ what: 'rotation' })
  line.fate = () => 'answered'
  expect(await bob.user.run(['show'])).toMatchObject({ code: 0, err: 'finished first: a new key for the repository' })
  const staged = unfinished?.what === 'rotation' ? unfinished.operation.verificationMethods['atproto'] : null
  expect((await stateOf(bob.account.did)).verificationMethods.atproto).toBe(staged)
})

test('a rotation that the server has finished meanwhile is finished for the wallet too', async () => {
  await using line = await startFaultyLine(plc.url)
  await using far = await startPds({ ...config, plcDirectoryUrl: line.url })
  using carol = await walletHolder(far, plc.url, 'carol')
  await carol.user.do(['sign-in'])
  await carol.user.keep(await carol.user.contents(), 'copy')
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  expect((await carol.user.run(['rotate-key'])).code).toBe(1)
  line.fate = () => 'answered'
  await carol.user.do(['rotate-key'], { device: 'copy' })
  expect(await carol.user.run(['show'])).toMatchObject({ code: 0, err: 'finished first: a new key for the repository' })
  expect((await request(`${plc.url}/${carol.account.did}/log`)).body).toHaveLength(3)
})

test('a rotation that was overtaken is given up, and the next one works', async () => {
  await using line = await startFaultyLine(plc.url)
  await using far = await startPds({ ...config, plcDirectoryUrl: line.url })
  using dora = await walletHolder(far, plc.url, 'dora')
  await dora.user.do(['sign-in'])
  await dora.user.keep(await dora.user.contents(), 'copy')
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  expect((await dora.user.run(['rotate-key'])).code).toBe(1)
  // Past the server, and after its operation was signed.
  const key = signingKey('p256', Buffer.from(dora.contents.deviceKey, 'hex'))
  const last = (await request(`${plc.url}/${dora.account.did}/log/last`)).body
  const operation = signOperation(
    nextOperation(last, { alsoKnownAs: ['at://dora.test', 'https://dora.example'] })!,
    key,
  )
  expect((await request(`${plc.url}/${dora.account.did}`, { json: operation })).status).toBe(200)
  line.fate = () => 'answered'
  expect(await dora.user.run(['show'])).toMatchObject({ code: 1 })
  expect(await dora.user.run(['rotate-key'])).toMatchObject({ code: 0, err: '' })
  expect((await stateOf(dora.account.did)).alsoKnownAs).toEqual(['at://dora.test', 'https://dora.example'])
})
