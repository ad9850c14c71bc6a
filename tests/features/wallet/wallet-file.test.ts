/** The file of a wallet: who can read it, and what happens when two commands write it. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { Decrypter } from 'age-encryption'
import { freshContents } from '../../../src/wallet/wallet.ts'
import { userDataPath } from '../../../src/base/sealed-file.ts'
import { WalletFile } from '../../../src/wallet/wallet-file.ts'
import { PASSPHRASE, WalletUser } from '../../support/clients/wallet-user.ts'
import { thrownBy } from '../../support/thrown.ts'

const DID = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
const contents = { ...freshContents('https://pds.example', 'https://plc.example'), did: DID, handle: 'alice.example' }

test('is an age file that only its owner reads', async () => {
  using user = new WalletUser()
  await user.keep(contents)
  const sealed = readFileSync(user.path())
  expect(sealed.toString('latin1')).toStartWith('age-encryption.org/v1\n-> scrypt ')
  expect(sealed.toString('latin1')).not.toContain('alice')
  expect(statSync(user.path()).mode & 0o777).toBe(0o600)
  const decrypter = new Decrypter()
  decrypter.addPassphrase(PASSPHRASE)
  expect(JSON.parse(await decrypter.decrypt(sealed, 'text'))).toEqual(contents)
  expect(readdirSync(user.folder)).toEqual(['wallet.age'])
})

test('opens with its passphrase alone', async () => {
  using user = new WalletUser()
  await user.keep(contents)
  expect(await user.run(['show'], { passphrase: 'another passphrase' })).toMatchObject({
    code: 1,
    out: '',
    err: 'holdfast wallet show: the passphrase does not open this wallet',
  })
  writeFileSync(user.path(), 'not an age file')
  expect(await user.run(['show'])).toMatchObject({
    code: 1,
    err: 'holdfast wallet show: the passphrase does not open this wallet',
  })
})

test('is not overwritten by a command that read an older one', async () => {
  using user = new WalletUser()
  await user.keep(contents)
  const open = () => WalletFile.open(user.path(), PASSPHRASE, 10)
  const [one, two] = [await open(), await open()]
  await one.file.write({ ...contents, handle: 'one.example' })
  expect(await thrownBy(two.file.write({ ...contents, handle: 'two.example' }))).toThrow('another command has changed')
  await one.file.write({ ...contents, handle: 'three.example' })
  expect(await user.contents()).toMatchObject({ handle: 'three.example' })
  expect(await thrownBy(WalletFile.fresh(user.path(), PASSPHRASE, 10).write(contents))).toThrow(
    'another command has changed',
  )
})

test('of a later version is refused', async () => {
  using user = new WalletUser()
  await user.keep({ ...contents, format: 2 as 1 })
  expect((await user.run(['show'])).err).toEndWith('has format 2; this version supports format 1')
})

test('is where the desktop keeps data of programs', () => {
  const pathFor = (env: Record<string, string>) => userDataPath(env, 'wallet.age')
  expect(pathFor({ XDG_DATA_HOME: '/data', HOME: '/home/alice' })).toBe('/data/holdfast/wallet.age')
  expect(pathFor({ XDG_DATA_HOME: 'data', HOME: '/home/alice' })).toBe('/home/alice/.local/share/holdfast/wallet.age')
  expect(pathFor({ HOME: '/home/alice' })).toBe('/home/alice/.local/share/holdfast/wallet.age')
})

test('needs a passphrase of some length, twice the same, and somebody to ask for it', async () => {
  using user = new WalletUser()
  const create = [
    'create',
    '--server',
    'http://localhost:1',
    '--handle',
    'a.test',
    '--email',
    'a@example.com',
    '--code',
    'ABC123',
  ]
  expect(await user.run(create, { passphrase: 'short' })).toMatchObject({
    code: 1,
    err: expect.stringContaining('at least 8 characters'),
  })
  expect(readdirSync(user.folder)).toEqual([])
})

test('takes no cost at which it could neither be sealed nor opened', async () => {
  using user = new WalletUser()
  await user.keep(contents)
  const copy = join(user.folder, 'copy.age')
  expect(await user.run(['export', copy], { workFactor: 21 })).toMatchObject({
    code: 2,
    err: expect.stringContaining('HOLDFAST_WALLET_WORK_FACTOR takes a whole number from 10 to 20'),
  })
  expect(readdirSync(user.folder)).toEqual(['wallet.age'])
})

test('is copied under another passphrase, or in clear with a warning, and never over a file', async () => {
  using user = new WalletUser()
  await user.keep(contents)
  const copy = join(user.folder, 'copy.age')
  await user.do(['export', copy])
  expect((await WalletFile.open(copy, PASSPHRASE, 10)).contents).toEqual(contents)
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect(await user.run(['export', copy])).toMatchObject({ code: 1 })
  const plain = join(user.folder, 'plain.json')
  expect(await user.run(['export', plain, '--plain'])).toMatchObject({
    code: 0,
    err: expect.stringContaining('is not encrypted'),
  })
  expect(JSON.parse(readFileSync(plain, 'utf8'))).toEqual(contents)
  expect(statSync(plain).mode & 0o777).toBe(0o600)
})

test('without an identity, or with one that is half made, says what to run', async () => {
  using user = new WalletUser()
  expect(await user.run(['show'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('run "holdfast wallet create"'),
  })
  await user.keep({ ...contents, did: null })
  expect(await user.run(['sign-in'])).toMatchObject({ code: 1, err: expect.stringContaining('no identity yet') })
  await user.keep({ ...contents, unfinished: { what: 'recovery', did: DID, availableAt: null, escrowShare: null } })
  expect(await user.run(['sign-in'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('run "holdfast wallet recover" again'),
  })
  await user.keep({ ...contents, unfinished: { what: 'arrival', transfer: null } })
  expect(await user.run(['rotate-key'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('run "holdfast wallet transfer" again'),
  })
})
