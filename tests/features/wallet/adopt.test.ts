/** Signing up with the key of a wallet, which then takes charge of the account. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { printedShare, WalletUser } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })

const rotationKeys = async (did: string): Promise<string[]> =>
  (await request(`${plc.url}/${did}/data`)).body.rotationKeys

test('a key is made once, and an account that lists it gets a recovery key below it', async () => {
  using user = new WalletUser(() => pds.clock.now())
  const key = await user.do(['key', '--server', pds.url, '--directory', plc.url])
  expect(key).toMatch(/^did:key:zDn[1-9A-HJ-NP-Za-km-z]+$/)
  expect(await user.do(['key'])).toBe(key)

  const alice = await createAccount(pds, 'alice', { recoveryKey: key })
  const [, server] = await rotationKeys(alice.did)
  const { code, out } = await user.run(['adopt', '@Alice.test'])
  expect(code).toBe(0)
  expect(printedShare(out).split(' ')).toHaveLength(42)
  const contents = await user.contents()
  expect(contents).toMatchObject({ did: alice.did, paperShare: null, keychainShare: expect.any(String) })
  expect(await rotationKeys(alice.did)).toEqual([key, contents.recoveryKey!, server!])
  expect(await user.run(['adopt', 'alice.test'])).toMatchObject({ code: 1, err: expect.stringContaining('already') })
})

test('an account that does not list the key, or that is not there, is not adopted', async () => {
  using user = new WalletUser(() => pds.clock.now())
  await user.do(['key', '--server', pds.url, '--directory', plc.url])
  const bob = await createAccount(pds, 'bob')
  const before = await rotationKeys(bob.did)
  expect(await user.run(['adopt', 'bob.test'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('does not list the key'),
  })
  expect(await user.run(['adopt', 'nobody.test'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not known'),
  })
  expect(await rotationKeys(bob.did)).toEqual(before)
  expect((await user.contents()).did).toBeNull()
})
