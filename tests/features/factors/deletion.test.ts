/** Deleting an account takes what a sign-in takes, when its holder keeps a factor. */
import { expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { FactorHolder, passkeyOptionsOn } from '../../support/clients/factor-holder.ts'
import { hiddenFields } from '../../support/clients/oauth-client.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

async function holderOf(name: string, add: (holder: FactorHolder) => Promise<unknown>) {
  const holder = new FactorHolder(pds, await createAccount(pds, name))
  await holder.signIn()
  await add(holder)
  await holder.account.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
  const token = await lastCode(pds, holder.account.email)
  const { did } = holder.account
  const remove = (more: object = {}) =>
    xrpc(pds, 'com.atproto.server.deleteAccount', { json: { did, password: PASSWORD, token, ...more } })
  const isThere = async () => (await pds.count('account', { did })) === 1
  /** Sends the form of the account page. */
  const send = async (more: Record<string, string> = {}) => {
    const { body } = await holder.browser.open(`/account?account=${encodeURIComponent(did)}`)
    const { form_token = '' } = hiddenFields(body)
    return holder.browser.send(path, { account: did, form_token, code: token, current: PASSWORD, ...more })
  }
  const path = `/account/delete?account=${encodeURIComponent(did)}`
  return { holder, token, remove, isThere, send, path }
}

test('an account with an app is deleted with its code, and only the right password tells that it has one', async () => {
  const { holder, remove, isThere } = await holderOf('alice', (one) => one.addApp())
  const denied = { status: 401, body: { error: 'AuthenticationRequired' } }
  expect(await remove({ password: 'wrong', authFactorToken: holder.nextCode() })).toMatchObject(denied)
  expect(await remove()).toMatchObject({ status: 401, body: { error: 'AuthFactorTokenRequired' } })
  expect(await remove({ authFactorToken: '000000' })).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
  expect(await remove({ token: 'AAAAA-AAAAA', authFactorToken: holder.nextCode() })).toMatchObject(denied)
  expect(await isThere()).toBe(true)
  expect(await remove({ authFactorToken: holder.recoveryCodes[0] })).toMatchObject({ status: 200 })
  expect(await isThere()).toBe(false)
})

test('an account without a factor is deleted as ever, and one whose factor is the mail by the code of the deletion', async () => {
  const plain = await holderOf('bob', async () => null)
  expect(await plain.remove({ authFactorToken: 'anything' })).toMatchObject({ status: 200 })
  const mailed = await holderOf('carol', async ({ account }) => {
    await account.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
    const json = { email: account.email, token: await lastCode(pds, account.email) }
    await account.call('com.atproto.server.confirmEmail', { json })
    await account.call('com.atproto.server.updateEmail', { json: { email: account.email, emailAuthFactor: true } })
  })
  expect(await mailed.remove()).toMatchObject({ status: 200 })
  expect(await mailed.isThere()).toBe(false)
})

test('the page asks for the factor after the password, and deletes with a passkey', async () => {
  const device = { current: null as Awaited<ReturnType<FactorHolder['addPasskey']>> | null }
  const { holder, token, send, path, isThere } = await holderOf('dora', async (one) => {
    device.current = await one.addPasskey()
  })
  expect((await send({ current: 'wrong' })).body).toContain('password is wrong')
  const asked = await send()
  expect(asked.body).toContain('One more step')
  expect(asked.body).not.toContain(PASSWORD)
  const fields = hiddenFields(asked.body)
  const options = passkeyOptionsOn(asked.body)!
  const lie = device.current!.get(options, { isVerified: false })
  expect((await holder.browser.send(path, { ...fields, passkey: lie })).body).toContain('was not accepted')
  const wrongCode = { ...fields, code: 'AAAAA-AAAAA', passkey: device.current!.get(options) }
  expect((await holder.browser.send(path, wrongCode)).body).toContain('The code or the password is wrong')
  expect(await isThere()).toBe(true)
  const again = await send({ code: token })
  const passkey = device.current!.get(passkeyOptionsOn(again.body)!)
  const done = await holder.browser.send(path, { ...hiddenFields(again.body), passkey })
  expect(done.headers.get('location')).toBe('/account/sign-in?done=deleted')
  expect(await isThere()).toBe(false)
})

test('the factor of another account in the same browser deletes nothing', async () => {
  const victim = await holderOf('erin', (one) => one.addApp())
  const asked = await victim.send()
  const other = new FactorHolder(pds, await createAccount(pds, 'frank'))
  await other.signIn()
  await other.addApp()
  const { browser } = victim.holder
  const { handle: identifier } = other.account
  const pending = await browser.send('/account/sign-in', { identifier, password: PASSWORD })
  const { factor_step = '' } = hiddenFields(pending.body)
  const stolen = { ...hiddenFields(asked.body), factor_step, factor_code: other.nextCode() }
  expect(await browser.send(victim.path, stolen)).toMatchObject({ status: 400 })
  expect(await victim.isThere()).toBe(true)
})
