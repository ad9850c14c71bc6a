/** Getting an identity back whose device is lost, with the share on paper and the one of the server. */
import { describe, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { startPds } from '../../support/servers/pds.ts'
import { recoveryCodes, REFUSED, release, withMasterKey } from '../../support/clients/recovery.ts'
import { printedShare, WalletUser } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'

const DELAY_SECS = 86_400

const { pds, plc } = useWorld({ plc: true, config: { ...withMasterKey, rateLimit: { enabled: false } } })

interface Owner extends Disposable {
  user: WalletUser
  account: TestAccount
  /** The words on paper. */
  paper: string
}

const there = () => ['--server', pds.url, '--directory', plc.url]

/** Somebody with a wallet, and with all three shares where they belong. */
async function owner(name: string): Promise<Owner> {
  const user = new WalletUser(() => pds.clock.now())
  const key = await user.do(['key', ...there()])
  const account = await createAccount(pds, name, { recoveryKey: key })
  const paper = printedShare(await user.do(['adopt', account.handle]))
  return { user, account, paper, [Symbol.dispose]: () => user[Symbol.dispose]() }
}

const rotationKeys = async (did: string): Promise<string[]> =>
  (await request(`${plc.url}/${did}/data`)).body.rotationKeys
const newest = async (email: string) => (await recoveryCodes(pds, email)).at(-1)!
const device = 'new'

test('a code by mail, a delay and the paper bring the identity to a new device', async () => {
  using alice = await owner('alice')
  const { user, account, paper } = alice
  const before = await rotationKeys(account.did)
  expect(await user.do(['recover', 'alice.test', ...there()], { device })).toContain('a code was mailed')
  const code = await newest(account.email)
  expect(await user.do(['recover', '--code', code], { device })).toMatch(/releases its share at \d{4}-/)
  // Asking does not hurry it.
  expect(await user.do(['recover'], { device })).toContain('releases its share at')
  expect((await user.run(['sign-in'], { device })).err).toContain('run "holdfast wallet recover" again')
  pds.clock.advance({ secs: DELAY_SECS + 1 })

  // A mistake on paper does not lose the share that was handed out.
  expect(await user.run(['recover', '--share', paper.replace(/^\w+/, 'zzzz')], { device })).toMatchObject({
    code: 1,
    err: expect.stringContaining('"zzzz" is not a word'),
  })
  const out = await user.do(['recover', '--share', paper], { device })
  expect(out).toContain('alice.test is yours again')
  const after = await rotationKeys(account.did)
  const recovered = await user.contents(device)
  expect(after).toEqual([await user.do(['key'], { device }), recovered.recoveryKey!, ...before.slice(2)])
  expect(printedShare(out)).not.toBe(paper)
  expect(recovered).toMatchObject({ did: account.did, handle: 'alice.test', unfinished: null })

  // The old device has lost its power, and the new one has it.
  expect((await user.run(['sign-in'])).code).toBe(1)
  expect(await user.do(['sign-in'], { device })).toContain('Signed in')
  expect((await noticesTo(pds, account.email)).length).toBeGreaterThan(0)
})

test('strangers collect nothing that the wallet asked for, and a lost answer costs nothing', async () => {
  using gail = await owner('gail')
  const { user, account, paper } = gail
  await user.do(['recover', 'gail.test', ...there()], { device })
  const code = await newest(account.email)
  await user.do(['recover', '--code', code], { device })
  pds.clock.advance({ secs: DELAY_SECS + 1 })
  expect(await release(pds, account.did)).toMatchObject(REFUSED)
  expect((await release(pds, account.did, code)).status).toBe(200)
  expect(await user.do(['recover', '--share', paper], { device })).toContain('gail.test is yours again')
})

test('the new shares work, and the old paper does not', async () => {
  using bob = await owner('bob')
  const { user, account, paper: old } = bob
  const keychain = (await user.contents()).keychainShare!
  const fromInput = ['recover', 'bob.test', '--offline', '--share', '-', '--second-share', '-', ...there()]
  expect(await user.run(fromInput, { device: 'two', input: [old] })).toMatchObject({
    code: 2,
    err: expect.stringContaining('standard input'),
  })
  await user.do(fromInput, { device: 'two', input: [old, keychain] })
  const second = await user.contents('two')
  expect((await user.run(['sign-in'])).code).toBe(1)

  const words = (share: string) => [
    'recover',
    'bob.test',
    '--offline',
    '--share',
    share,
    '--second-share',
    second.keychainShare!,
    ...there(),
  ]
  expect(await user.run(words(old), { device: 'three' })).toMatchObject({
    code: 1,
    err: expect.stringContaining('do not belong together'),
  })
  expect(
    await user.run(['recover', '--offline', '--share', old, '--second-share', keychain], { device: 'three' }),
  ).toMatchObject({
    code: 1,
    err: expect.stringContaining('does not list'),
  })
  expect(
    await user.run(['recover', '--offline', '--share', old, '--second-share', old], { device: 'three' }),
  ).toMatchObject({
    code: 1,
    err: expect.stringContaining('shares are the same'),
  })
  expect((await rotationKeys(account.did)).slice(0, 2)).toEqual([
    await user.do(['key'], { device: 'two' }),
    second.recoveryKey!,
  ])
})

describe('a recovery that somebody else began', () => {
  test('is stopped by the owner, and the code is worth nothing then', async () => {
    using carol = await owner('carol')
    const { user, account, paper } = carol
    await user.do(['recover', 'carol.test', ...there()], { device })
    const code = await newest(account.email)
    await user.do(['recover', '--code', code], { device })
    expect(await user.do(['escrow', '--cancel'])).toBe('The recovery has been stopped.')
    pds.clock.advance({ secs: DELAY_SECS + 1 })
    expect(await user.run(['recover', '--share', paper], { device })).toMatchObject({
      code: 1,
      err: expect.stringContaining('--again'),
    })
    expect(await user.run(['recover', '--code', code, '--share', paper], { device })).toMatchObject({ code: 1 })
    expect(await user.do(['sign-in'])).toContain('Signed in')

    // The owner herself, who has to begin again.
    await user.do(['recover', '--again'], { device })
    await user.do(['recover', '--code', await newest(account.email)], { device })
    pds.clock.advance({ secs: DELAY_SECS + 1 })
    expect(await user.do(['recover', '--share', paper], { device })).toContain('is yours again')
  })

  test('gets nothing from a server that has given its share back, or that has another', async () => {
    using dave = await owner('dave')
    const { user, account, paper } = dave
    await user.do(['escrow', '--withdraw'])
    await user.do(['recover', 'dave.test', ...there()], { device })
    expect(await user.run(['recover', '--code', await newest(account.email)], { device })).toMatchObject({ code: 1 })

    const renewed = printedShare(await user.do(['escrow', '--renew']))
    await user.do(['recover', '--again'], { device })
    await user.do(['recover', '--code', await newest(account.email)], { device })
    pds.clock.advance({ secs: DELAY_SECS + 1 })
    expect(await user.run(['recover', '--share', paper], { device })).toMatchObject({
      code: 1,
      err: expect.stringContaining('do not belong together'),
    })
    expect(await user.do(['recover', '--share', renewed], { device })).toContain('is yours again')
  })
})

test('an account that is not there, or another kind of identity, is told', async () => {
  using user = new WalletUser(() => pds.clock.now())
  expect(await user.run(['recover', 'nobody.test', ...there()])).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not known'),
  })
  expect(await user.run(['recover', 'did:web:example.com', ...there()])).toMatchObject({
    code: 1,
    err: expect.stringContaining('has no recovery key'),
  })
  expect(await user.run(['recover', ...there()])).toMatchObject({
    code: 2,
    err: expect.stringContaining('the handle or the DID of the identity'),
  })
})

test('a server without a delay releases at once', async () => {
  await using fast = await startPds({
    ...withMasterKey,
    plcDirectoryUrl: plc.url,
    rateLimit: { enabled: false },
    recovery: { releaseDelaySecs: 0 },
  })
  using user = new WalletUser(() => fast.clock.now())
  const place = ['--server', fast.url, '--directory', plc.url]
  const account = await createAccount(fast, 'erin', { recoveryKey: await user.do(['key', ...place]) })
  const paper = printedShare(await user.do(['adopt', 'erin.test']))
  await user.do(['recover', 'erin.test', ...place], { device })
  const code = (await recoveryCodes(fast, account.email)).at(-1)!
  expect(await user.do(['recover', '--code', code, '--share', paper], { device })).toContain('is yours again')
})
