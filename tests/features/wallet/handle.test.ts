/** Changing the handle of an account whose identity only its wallet can change. */
import { expect, test } from 'bun:test'
import { xrpc } from '../../support/clients/account.ts'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { request } from '../../support/clients/http.ts'
import { WalletUser } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc } = useWorld({ plc: true, config: { ...forCeremonies, accounts: { passwordOptional: true } } })

async function born(name: string, email = `${name}@example.com`): Promise<WalletUser> {
  const user = new WalletUser(() => pds.clock.now())
  const place = ['--server', pds.url, '--directory', plc.url]
  await user.do(['create', ...place, '--handle', `${name}.test`, '--email', email, '--code', await claimCode(pds)])
  return user
}

const aliases = async (did: string) => (await request(`${plc.url}/${did}/data`)).body.alsoKnownAs
const handleOf = async (did: string) => (await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).body.handle

test('server and identity have the new handle, and the old one is free', async () => {
  using alice = await born('alice')
  const did = (await alice.contents()).did!
  expect(await alice.do(['handle', '@Alicia.test'])).toContain('alicia.test')
  expect(await aliases(did)).toEqual(['at://alicia.test'])
  expect(await handleOf(did)).toBe('alicia.test')
  expect((await alice.contents()).handle).toBe('alicia.test')
  using other = await born('alice', 'other@example.com')
  expect((await other.contents()).handle).toBe('alice.test')
})

test('a handle of the own domain, once it leads to the identity', async () => {
  using carol = await born('carol')
  const did = (await carol.contents()).did!
  expect((await carol.run(['handle', 'carol.example.com'])).code).toBe(1)
  pds.dns.setHandle('carol.example.com', did)
  await carol.do(['handle', 'carol.example.com'])
  expect(await aliases(did)).toEqual(['at://carol.example.com'])
  expect(await handleOf(did)).toBe('carol.example.com')
})

test('a change that the directory did not hear of is made by saying it again', async () => {
  using erin = await born('erin')
  const contents = await erin.contents()
  await erin.keep({ ...contents, directory: 'http://localhost:1' })
  expect((await erin.run(['handle', 'erina.test'])).code).toBe(1)
  await erin.keep({ ...(await erin.contents()), directory: plc.url })
  await erin.do(['handle', 'erina.test'])
  expect(await aliases(contents.did!)).toEqual(['at://erina.test'])
  expect(await handleOf(contents.did!)).toBe('erina.test')
})

test('what is taken or no handle changes nothing', async () => {
  using bob = await born('bob')
  using dave = await born('dave')
  const did = (await bob.contents()).did!
  for (const handle of ['dave.test', 'no handle', 'bob']) expect((await bob.run(['handle', handle])).code).toBe(1)
  expect(await aliases(did)).toEqual(['at://bob.test'])
  expect(await handleOf(did)).toBe('bob.test')
  expect((await dave.contents()).handle).toBe('dave.test')
})
