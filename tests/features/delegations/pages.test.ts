/** Shared accounts on the pages of both people: what they show, what their forms do, and what they refuse. */
import { expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { DelegateBrowser, invite, ownerCall, returned, share } from '../../support/clients/delegate.ts'
import { hiddenFields, OAuthClient } from '../../support/clients/oauth-client.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))

let count = 0
const newAccount = () => createAccount(pds, `person${++count}`)
const signedIn = (who: TestAccount) => new DelegateBrowser(pds).signIn(who)
const PAGE = '/account/sharing'

/** Sends a form of the page, as the browser that shows it. */
async function send(browser: DelegateBrowser, form: string, fields: Record<string, string>) {
  const { body } = await browser.open(PAGE)
  const { form_token, account } = hiddenFields(body)
  return browser.send(`${PAGE}/${form}`, { form_token: form_token!, account: account!, ...fields })
}

test('a person invites on the page, the other accepts and leaves there, and each reads what is so', async () => {
  const holder = await newAccount()
  const [theirs, bobs] = [await signedIn(holder), await signedIn(bob)]
  const invited = await send(theirs, 'invite', { delegate: `@${bob.handle}`, preset: 'post', ends: '2099-12-31' })
  expect(invited.headers.get('location')).toContain('done=invited')
  const [{ id, expiresAt }] = (await ownerCall(pds, holder, 'delegates')).body.delegates
  expect(expiresAt).toBe('2099-12-31T23:59:59.999Z')
  const shown = (await theirs.open(`${PAGE}?done=invited`)).body
  for (const text of [`@${bob.handle}`, 'not accepted yet', 'Withdraw', 'can be accepted for seven days'])
    expect(shown).toContain(text)

  expect((await bobs.open('/account')).body).toContain('You have an invitation to act for another account.')
  const offered = (await bobs.open(PAGE)).body
  for (const text of [`@${holder.handle}`, 'Invites you to act for it', 'Create posts', 'Accept'])
    expect(offered).toContain(text)
  expect((await send(bobs, 'accept', { id })).headers.get('location')).toContain('done=accepted')
  expect((await theirs.open(PAGE)).body).toContain('End access')
  expect((await bobs.open(PAGE)).body).toContain('Leave')
  expect((await send(bobs, 'leave', { id })).headers.get('location')).toContain('done=left')
  expect((await theirs.open(PAGE)).body).toContain('by the other person')
})

test('the holder reads what was done and by whom, sees the app, and ends it', async () => {
  const holder = await newAccount()
  const [theirs, bobs] = [await signedIn(holder), await signedIn(bob)]
  const id = await share(pds, holder, bob)
  const app = new OAuthClient(pds)
  const url = app.authorizeUrl(await app.requestUri())
  const { body: tokens } = await app.redeem(returned(await bobs.allow(url, id)).get('code')!)
  const record = { $type: 'app.bsky.feed.post', text: 'for all', createdAt: '2026-01-01T00:00:00.000Z' }
  const json = { repo: holder.did, collection: 'app.bsky.feed.post', record }
  expect((await app.call(tokens.access_token, 'com.atproto.repo.createRecord', {}, { json })).status).toBe(200)
  const acts = (await theirs.open(`${PAGE}/record?delegation=${id}`)).body
  for (const text of [
    '1 record created',
    `@${bob.handle}`,
    'Signed in to an app on this device',
    'Accepted the invitation',
  ])
    expect(acts).toContain(text)
  expect((await theirs.open(`${PAGE}/record`)).body).toContain('1 record created')
  expect((await theirs.open('/account')).body).toContain(`Signed in by @${bob.handle}`)
  expect((await send(theirs, 'end', { id })).headers.get('location')).toContain('done=ended')
  expect((await app.call(tokens.access_token, 'com.atproto.repo.createRecord', {}, { json })).status).toBe(401)
  expect((await theirs.open(`${PAGE}/record`)).body).toContain('Access ended')
})

test('a refused form says what is wrong, and keeps what was typed', async () => {
  const browser = await signedIn(await newAccount())
  const faults: [Record<string, string>, string][] = [
    [{ delegate: 'nobody.test' }, 'This is not the handle of an active account on this server.'],
    [{ delegate: bob.handle, scope: 'identity:*' }, 'only the account itself may have it'],
    [{ delegate: bob.handle, ends: '2020-01-01' }, 'Please choose a day that has not passed.'],
  ]
  for (const [fields, words] of faults) {
    const { status, body } = await send(browser, 'invite', fields)
    expect(status).toBe(400)
    expect(body).toContain(words)
    for (const value of Object.values(fields)) expect(body).toContain(`value="${value}"`)
  }
  expect((await send(browser, 'accept', { id: 'dlg_unknown' })).body).toContain('This invitation is no longer open.')
  const invitation = { delegate: bob.handle, preset: 'post' }
  expect((await send(browser, 'invite', invitation)).status).toBe(303)
  expect((await send(browser, 'invite', invitation)).body).toContain('This account already acts for yours')
})

test('a form counts only with the token of the page, from our own site, for an account that is signed in', async () => {
  const holder = await newAccount()
  const browser = await signedIn(holder)
  const { form_token } = hiddenFields((await browser.open(PAGE)).body)
  const fields = { account: holder.did, delegate: bob.handle }
  const refused = [
    await browser.send(`${PAGE}/invite`, fields),
    await browser.send(`${PAGE}/invite`, { ...fields, form_token: 'x' }),
    await browser.send(`${PAGE}/invite`, { ...fields, form_token: form_token! }, { 'sec-fetch-site': 'cross-site' }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403])
  const elsewhere = await browser.send(`${PAGE}/invite`, { ...fields, account: alice.did, form_token: form_token! })
  expect(elsewhere.headers.get('location')).toContain('/account/sign-in')
  expect((await ownerCall(pds, holder, 'delegates')).body.delegates).toEqual([])
  expect((await new DelegateBrowser(pds).open(PAGE)).headers.get('location')).toContain('/account/sign-in')
})

test('one person reads and ends nothing of another on the pages either', async () => {
  const holder = await newAccount()
  const id = await share(pds, holder, bob)
  const browser = await signedIn(alice)
  for (const form of ['end', 'leave', 'accept']) await send(browser, form, { id })
  expect((await ownerCall(pds, holder, 'delegates')).body.delegates).toMatchObject([{ id, status: 'active' }])
  expect((await browser.open(`${PAGE}/record?delegation=${id}`)).body).toContain('Nothing has been done yet.')
})

test('the pages speak the language of the person who asks', async () => {
  const holder = await newAccount()
  await invite(pds, holder, bob, { presets: ['post'] })
  const browser = await signedIn(holder)
  await browser.send('/language?back=/account', { language: 'de' })
  const { body } = await browser.open(PAGE)
  for (const text of ['Geteilte Konten', 'noch nicht angenommen', 'Zurückziehen']) expect(body).toContain(text)
})
