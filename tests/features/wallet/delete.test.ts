/** Deleting an account with the key of its wallet and a mailed code. */
import { expect, test } from 'bun:test'
import { xrpc } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { useWorld } from '../../support/world.ts'

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false } } })

const isHere = async (did: string) => (await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`)).status === 200
const isEnded = async (did: string) => (await request(`${plc.url}/${did}/log/last`)).body.type === 'plc_tombstone'

test('asks for the code and the handle, deletes the account and ends the identity', async () => {
  using alice = await walletHolder(pds, plc.url, 'alice')
  const { user, account } = alice
  const refused = await user.run(['delete'], { answers: { 'Type alice.test': 'alice' } })
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('nothing was done') })
  const code = await lastCode(pds, account.email)
  expect(
    await user.run(['delete', '--code', 'AAAAA-AAAAA'], { answers: { 'Type alice.test': 'alice.test' } }),
  ).toMatchObject({ code: 1 })
  expect(await isHere(account.did)).toBe(true)
  expect(await user.do(['delete', '--code', code], { answers: { 'Type alice.test': 'Alice.test' } })).toBe(
    'The account is deleted.\nThe identity is ended. Keep the wallet for 72 hours if you may want it back.',
  )
  expect(await isHere(account.did)).toBe(false)
  expect(await isEnded(account.did)).toBe(true)
})

test('without a terminal takes two runs, and leaves the identity if it is told to', async () => {
  using bob = await walletHolder(pds, plc.url, 'bob')
  const { user, account } = bob
  expect(await user.do(['delete', '--keep-identity'])).toContain('run this again with --code and --yes')
  const code = await lastCode(pds, account.email)
  expect(await user.run(['delete', '--code', code])).toMatchObject({
    code: 2,
    err: expect.stringContaining('add --yes'),
  })
  expect(await user.do(['delete', '--keep-identity', '--code', code, '--yes'])).toBe('The account is deleted.')
  expect(await isHere(account.did)).toBe(false)
  expect(await isEnded(account.did)).toBe(false)
  expect(await user.do(['delete', '--only-identity', '--yes'])).toContain('The identity is ended.')
  expect(await isEnded(account.did)).toBe(true)
})

test('the wallet of another identity deletes nothing', async () => {
  using carol = await walletHolder(pds, plc.url, 'carol')
  using dave = await walletHolder(pds, plc.url, 'dave')
  await carol.user.do(['delete'])
  const code = await lastCode(pds, carol.account.email)
  await dave.user.keep({ ...dave.contents, did: carol.account.did, handle: 'carol.test' })
  expect(await dave.user.run(['delete', '--code', code, '--yes'])).toMatchObject({ code: 1 })
  expect(await isHere(carol.account.did)).toBe(true)
  expect(await carol.user.do(['delete', '--code', code, '--yes'])).toContain('The account is deleted.')
})
