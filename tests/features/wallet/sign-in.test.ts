/** Signing in with the key of a wallet, and what the wallet says about the identity. */
import { describe, expect, test } from 'bun:test'
import { signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })

const sessionOf = (accessJwt: string) => xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(accessJwt) })

test('a session is kept in the wallet, or printed and not kept', async () => {
  using alice = await walletHolder(pds, plc.url, 'alice')
  expect(await alice.user.do(['sign-in'])).toBe(`Signed in to ${pds.url} as alice.test.`)
  const { session } = await alice.user.contents()
  expect(await sessionOf(session!.accessJwt)).toMatchObject({ status: 200, body: { did: alice.account.did } })

  const printed = JSON.parse(await alice.user.do(['sign-in', '--print']))
  expect(printed).toMatchObject({ did: alice.account.did, handle: 'alice.test' })
  expect(await sessionOf(printed.accessJwt)).toMatchObject({ status: 200 })
  expect((await alice.user.contents()).session).toEqual(session)
})

test('a device whose clock is wrong is told so', async () => {
  using alice = await walletHolder(pds, plc.url, 'anna')
  const late = pds.clock.now() - 90_000
  Object.assign(alice.user, { now: () => late })
  expect(await alice.user.run(['sign-in'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/clock of this device is \d+ seconds behind/),
  })
})

describe('a key that was taken out of the identity', () => {
  test('does not sign in, and the wallet shows who is in its place', async () => {
    using bob = await walletHolder(pds, plc.url, 'bob')
    const view = () => bob.user.do(['show', '--json']).then((text) => JSON.parse(text))
    const before = await view()
    expect(before).toMatchObject({ did: bob.account.did, handle: 'bob.test', serverHere: true, shares: null })
    expect(before.keys.map(({ holder }: { holder: string }) => holder)).toEqual(['device', 'other'])

    const other = deviceKey()
    const { body: log } = await request(`${plc.url}/${bob.account.did}/log/audit`)
    const next = nextOperation(log.at(-1).operation, { rotationKeys: [other.did] })!
    const operation = signOperation(next, signingKey('p256', Buffer.from(bob.contents.deviceKey, 'hex')))
    expect((await request(`${plc.url}/${bob.account.did}`, { json: operation })).status).toBe(200)

    expect((await bob.user.run(['sign-in'])).code).toBe(1)
    expect((await view()).keys).toEqual([{ key: other.did, holder: 'other' }])
    expect((await bob.user.run(['show'])).err).toContain('This wallet can no longer change the identity')
    expect((await bob.user.run(['rotate-key'])).err).toContain('is no longer a rotation key')
  })
})

test('a directory that is away is named', async () => {
  using carol = await walletHolder(pds, plc.url, 'carol')
  await carol.user.keep({ ...carol.contents, directory: 'http://localhost:1' })
  expect((await carol.user.run(['show'])).err).toContain('http://localhost:1 cannot be reached')
})
