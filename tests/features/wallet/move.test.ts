/** Moving an account with the wallet that holds its key, to another server and back. */
import { expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { brokenByPost, startFaultyLine } from '../../support/faults/faulty-line.ts'
import { request } from '../../support/clients/http.ts'
import { belongingsOf, settleIn, verifiedRepo } from '../../support/clients/migration.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import type { WalletUser } from '../../support/clients/wallet-user.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const shared = { rateLimit: { enabled: false } }
const { pds: here, plc } = useWorld({ plc: true, config: shared })
const there = setUp(() => startPds({ ...shared, plcDirectoryUrl: plc.url, availableUserDomains: ['there.test'] }))

async function agentOf(user: WalletUser, pds: TestPds): Promise<AtpAgent> {
  const { did, handle, accessJwt, refreshJwt } = JSON.parse(await user.do(['sign-in', '--print']))
  const agent = new AtpAgent({ service: pds.url })
  await agent.resumeSession({ did, handle, accessJwt, refreshJwt, active: true })
  return agent
}

const stateOf = async (did: string) => (await request(`${plc.url}/${did}/data`)).body

test('everything goes along, the identity names the new server, and the wallet comes back', async () => {
  using alice = await walletHolder(here, plc.url, 'alice')
  const { user, account } = alice
  const agent = await agentOf(user, here)
  await settleIn(agent)
  const before = await belongingsOf(agent, plc.url)
  const home = await stateOf(account.did)
  const device = home.rotationKeys[0]

  const words = ['move', there.url, '--handle', 'alice.there.test', '--email', 'alice@example.com', '--yes']
  expect(await user.do(words)).toContain(`The account is now at ${there.url} as alice.there.test.`)
  expect(await user.contents()).toMatchObject({ server: there.url, handle: 'alice.there.test', unfinished: null })
  const moved = await stateOf(account.did)
  expect(moved.services.atproto_pds.endpoint).toBe(there.url)
  expect(moved.alsoKnownAs).toEqual(['at://alice.there.test'])
  expect(moved.rotationKeys[0]).toBe(device)
  // The old server is out: what it has left of the identity is what the wallet has.
  expect(moved.rotationKeys.filter((key: string) => home.rotationKeys.includes(key))).toEqual([device])

  const new_ = await agentOf(user, there)
  expect(await belongingsOf(new_, plc.url)).toEqual(before)
  await new_.post({ text: 'from the new home' })
  await verifiedRepo(new_, plc.url)
  expect((await request(`${here.url}/xrpc/com.atproto.sync.getRepoStatus?did=${account.did}`)).body).toMatchObject({
    status: 'deactivated',
  })

  expect(
    await user.do(['move', here.url, '--handle', 'alice.test', '--email', 'alice@example.com', '--yes']),
  ).toContain(`now at ${here.url}`)
  const back = await agentOf(user, here)
  expect(Object.keys((await belongingsOf(back, plc.url)).records)).toHaveLength(Object.keys(before.records).length + 1)
  await verifiedRepo(back, plc.url)
  expect((await request(`${there.url}/xrpc/com.atproto.sync.getRepoStatus?did=${account.did}`)).body).toMatchObject({
    status: 'deactivated',
  })
}, 60_000)

test('what the identity names for permissioned data goes along', async () => {
  using dora = await walletHolder(here, plc.url, 'dora')
  const { user, account, contents } = dora
  const key = signingKey('p256', Buffer.from(contents.deviceKey, 'hex'))
  const { body: last } = await request(`${plc.url}/${account.did}/log/last`)
  const entries = {
    verificationMethods: { atproto_space: formatDidKey(key.publicKey) },
    services: { atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' } },
  }
  const operation = nextOperation(last, {
    verificationMethods: { ...last.verificationMethods, ...entries.verificationMethods },
    services: { ...last.services, ...entries.services },
  })!
  expect((await request(`${plc.url}/${account.did}`, { json: signOperation(operation, key) })).status).toBe(200)
  const words = ['move', there.url, '--handle', 'dora.there.test', '--email', 'dora@example.com', '--yes']
  expect(await user.do(words)).toContain(`now at ${there.url}`)
  const state = await stateOf(account.did)
  expect(state).toMatchObject(entries)
  expect(state.services.atproto_pds.endpoint).toBe(there.url)
}, 60_000)

test('a move that the new server refuses changes nothing, and can be tried again', async () => {
  using bob = await walletHolder(here, plc.url, 'bob')
  const { user, account } = bob
  const before = await stateOf(account.did)
  const move = (handle: string) =>
    user.run(['move', there.url, '--handle', handle, '--email', 'bob@example.com', '--yes'])
  expect(await move('bob.there')).toMatchObject({ code: 1 })
  expect(await stateOf(account.did)).toEqual(before)
  expect((await request(`${here.url}/xrpc/com.atproto.sync.getRepoStatus?did=${account.did}`)).body).toMatchObject({
    active: true,
  })
  expect(await user.contents()).toMatchObject({ server: here.url, unfinished: null })
})

test.each(['question lost', 'answer lost'] as const)(
  'while the directory cannot be reached (%s), the account stays, and the move goes on later',
  async (fate) => {
    await using line = await startFaultyLine(plc.url)
    const name = fate === 'question lost' ? 'carol' : 'clara'
    using holder = await walletHolder(here, line.url, name)
    const { user, account } = holder
    await settleIn(await agentOf(user, here))
    line.fate = brokenByPost(fate)
    const words = ['move', there.url, '--handle', `${name}.there.test`, '--email', `${name}@example.com`, '--yes']
    expect((await user.run(words)).code).toBe(1)
    expect((await request(`${here.url}/xrpc/com.atproto.sync.getRepoStatus?did=${account.did}`)).body).toMatchObject({
      active: true,
    })
    expect((await user.run(['sign-in'])).err).toContain('run "holdfast wallet move" again')
    line.fate = () => 'answered'
    expect(await user.do(['move'])).toContain(`now at ${there.url}`)
    const { services } = await stateOf(account.did)
    expect(services.atproto_pds.endpoint).toBe(there.url)
    // However often it was sent: one operation has moved the account.
    const { body: log } = await request(`${plc.url}/${account.did}/log/audit`)
    expect(
      log.filter(({ operation }: { operation: { services?: object } }) =>
        JSON.stringify(operation.services).includes(here.url),
      ),
    ).toHaveLength(1)
  },
  60_000,
)
