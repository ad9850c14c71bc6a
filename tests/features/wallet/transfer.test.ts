/** Moving an identity from one device to another. */
import { expect, test } from 'bun:test'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { brokenByPost, startFaultyLine } from '../../support/faults/faulty-line.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { printedShare, WalletUser, createWords } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc } = useWorld({ plc: true, config: { ...forCeremonies, accounts: { passwordOptional: true } } })

const device = 'new'

async function born(name: string): Promise<WalletUser> {
  const user = new WalletUser(() => pds.clock.now())
  const place = ['--server', pds.url, '--directory', plc.url]
  await user.do(createWords(place, name, await claimCode(pds)))
  return user
}

/** The command that the old device prints, for the new one. */
const commandIn = (out: string) => /holdfast wallet (transfer --join .*)/.exec(out)![1]!.split(' ')
const keyIn = (out: string) => /did:key:\w+/.exec(out)![0]
const rotationKeys = async (did: string): Promise<string[]> =>
  (await request(`${plc.url}/${did}/data`)).body.rotationKeys

test('the new device takes the place of the old one, and has new shares', async () => {
  using user = await born('alice')
  const before = await user.contents()
  const keys = await rotationKeys(before.did!)
  const command = commandIn(await user.do(['transfer']))
  expect(command).toContain('--code')
  const key = keyIn(await user.do(command, { device }))

  // The old one has to agree first.
  expect(await user.run(['transfer'], { device })).toMatchObject({
    code: 1,
    err: expect.stringContaining(`transfer --to ${key}`),
  })
  expect(await user.run(['sign-in'], { device })).toMatchObject({
    code: 1,
    err: expect.stringContaining('run "holdfast wallet transfer" again'),
  })
  await user.do(['transfer', '--to', key])
  const out = await user.do(['transfer'], { device })

  expect(printedShare(out).split(' ')).toHaveLength(42)
  const after = await user.contents(device)
  expect(await rotationKeys(before.did!)).toEqual([key, after.recoveryKey!, ...keys.slice(2)])
  expect(after).toMatchObject({ did: before.did, handle: 'alice.test', unfinished: null })
  expect(await user.do(['sign-in'], { device })).toContain('as alice.test')

  // Nothing of the old device is left: its key, its shares, its sessions.
  expect((await user.run(['sign-in'])).code).toBe(1)
  expect(await user.contents()).toMatchObject({ keychainShare: null, walletSession: null, session: null })
  const hosting = await request(`${pds.url}/v1/recovery/release/cancel`, {
    method: 'POST',
    headers: bearer(before.walletSession!),
  })
  expect(hosting.status).toBe(401)
})

test('a code that is wrong, used or late leaves the new device as it was', async () => {
  using user = await born('bob')
  const command = commandIn(await user.do(['transfer']))
  const place = command.indexOf('--code') + 1
  expect((await user.run(command.with(place, 'AAAAAA'), { device })).code).toBe(1)
  expect((await user.contents(device)).did).toBeNull()
  await user.do(command, { device })
  expect((await user.run(command, { device: 'another' })).code).toBe(1)
  expect((await user.run(command, { device })).err).toContain('in use')

  using late = await born('carol')
  const old = commandIn(await late.do(['transfer']))
  pds.clock.advance({ secs: 901 })
  expect((await late.run(old, { device })).code).toBe(1)
  expect(await late.do(['sign-in'])).toContain('as carol.test')
  expect(commandIn(await late.do(['transfer']))).not.toEqual(old)
})

test('a hand-over that the directory did not answer for is finished by saying it again, and with the same key', async () => {
  using user = await born('frank')
  await using line = await startFaultyLine(plc.url)
  const key = keyIn(await user.do(commandIn(await user.do(['transfer'])), { device }))
  await user.keep({ ...(await user.contents()), directory: line.url })
  line.fate = brokenByPost('answer lost')
  expect((await user.run(['transfer', '--to', key])).code).toBe(1)
  line.fate = () => 'answered'
  expect((await user.run(['rotate-key'])).err).toContain('run "holdfast wallet transfer --to KEY" again')
  await user.do(['transfer', '--to', key])
  await user.do(['transfer'], { device })
  expect((await rotationKeys((await user.contents()).did!))[0]).toBe(key)
})

test('a key that is none, or one of the identity, is not signed', async () => {
  using user = await born('dave')
  const { did } = await user.contents()
  const own = await user.do(['key'])
  const before = await rotationKeys(did!)
  expect(await user.run(['transfer', '--to', own])).toMatchObject({
    code: 1,
    err: expect.stringContaining('no transfer is in progress'),
  })
  await user.do(['transfer'])
  for (const key of [...before, 'did:key:zNothing', 'hello'])
    expect((await user.run(['transfer', '--to', key])).code).toBe(1)
  expect(before[0]).toBe(own)
  expect(await rotationKeys(did!)).toEqual(before)
})

test('without a session that the server takes, the devices do it by themselves', async () => {
  using user = await born('erin')
  const contents = await user.contents()
  await user.keep({ ...contents, walletSession: null })
  const { out, err } = await user.run(['transfer'])
  expect(err).toContain('will stay open')
  const key = keyIn(await user.do(commandIn(out), { device }))
  await user.do(['transfer', '--to', key])
  await user.do(['transfer'], { device })
  expect((await rotationKeys(contents.did!))[0]).toBe(key)
})
