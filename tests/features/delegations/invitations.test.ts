/** How one account is shared with another: invited, accepted once, and seen by these two alone. */
import { describe, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { invite, ownerCall, share } from '../../support/clients/delegate.ts'
import { basic, request } from '../../support/clients/http.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { beforeLock } from '../../support/interruptions.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const DAY_SECS = 24 * 60 * 60

const { pds } = useWorld({ config: { rateLimit: { enabled: true } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))

let count = 0
const newAccount = () => createAccount(pds, `person${++count}`)
const asAdmin = (path: string, json?: unknown) =>
  request(`${pds.url}${path}`, { headers: basic('admin', ADMIN_TOKEN), ...(json === undefined ? {} : { json }) })
const accept = (who: TestAccount, id: string) => ownerCall(pds, who, `shared-accounts/${id}/accept`, {})
const delegatesOf = async (who: TestAccount) => (await ownerCall(pds, who, 'delegates')).body.delegates
const sharedWith = async (who: TestAccount) => (await ownerCall(pds, who, 'shared-accounts')).body.accounts

test('an invitation is seen by the two accounts, accepted by the one that it names, and mailed about', async () => {
  const holder = await newAccount()
  const id = await invite(pds, holder, bob, { presets: ['post'] })
  const terms = { id, scope: 'atproto repo:app.bsky.feed.post?action=create', status: 'invited' }
  expect(await delegatesOf(holder)).toMatchObject([{ ...terms, did: bob.did, handle: bob.handle }])
  expect(await sharedWith(bob)).toMatchObject([{ ...terms, did: holder.did, handle: holder.handle }])
  expect(await sharedWith(alice)).toEqual([])
  const offer = 'You are invited to act for another account'
  await until(() => pds.mails.some(({ to, subject }) => to === bob.email && subject.startsWith(offer)))
  expect(await accept(alice, id)).toMatchObject({ status: 404 })
  expect(await accept(holder, id)).toMatchObject({ status: 404 })
  expect(await accept(bob, id)).toMatchObject({ status: 200, body: { id, did: holder.did, status: 'active' } })
  expect((await noticesTo(pds, holder.email)).at(-1)).toMatchObject({
    subject: expect.stringContaining('Someone now acts for your account'),
  })
})

test('an accepted invitation cannot be accepted anew, nor can one that was declined, withdrawn or ended', async () => {
  const holder = await newAccount()
  const id = await share(pds, holder, bob)
  const first = (await delegatesOf(holder))[0].acceptedAt
  pds.clock.advance({ secs: 1 })
  expect((await accept(bob, id)).status).toBe(200)
  expect((await delegatesOf(holder))[0].acceptedAt).toBe(first)
  await ownerCall(pds, holder, `delegates/${id}/end`, {})
  expect(await accept(bob, id)).toMatchObject({ status: 404 })
  expect(await delegatesOf(holder)).toMatchObject([{ id, status: 'ended', endedBy: 'holder' }])
  for (const end of [
    (next: string) => ownerCall(pds, holder, `delegates/${next}/end`, {}),
    (next: string) => ownerCall(pds, bob, `shared-accounts/${next}/leave`, {}),
  ]) {
    const next = await invite(pds, holder, bob)
    expect((await end(next)).status).toBe(200)
    expect(await accept(bob, next)).toMatchObject({ status: 404 })
    expect(await delegatesOf(holder)).toHaveLength(1)
  }
})

const logInAgain = async (who: TestAccount): Promise<TestAccount> => {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: who.handle, password: who.password },
  })
  return { ...who, ...body }
}

describe('nobody', () => {
  test('learns from an invitation what a handle that is not here, not active, or their own, is', async () => {
    const [holder, gone, sleeping] = [await newAccount(), await newAccount(), await newAccount()]
    await asAdmin('/xrpc/com.atproto.admin.updateSubjectStatus', {
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: gone.did },
      takedown: { applied: true },
    })
    await sleeping.call('com.atproto.server.deactivateAccount', { json: {} })
    const answers = await Promise.all(
      [
        'nobody.test',
        'elsewhere.example.com',
        'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa',
        'no handle',
        alice.email,
        gone.handle,
        sleeping.handle,
      ].map(async (delegate) => (await ownerCall(pds, holder, 'delegates', { delegate })).body),
    )
    const message = 'delegate must be the handle of an active account of this server'
    expect(new Set(answers.map((body) => JSON.stringify(body)))).toEqual(
      new Set([JSON.stringify({ error: { code: 'InvalidRequest', message } })]),
    )
    expect((await ownerCall(pds, holder, 'delegates', { delegate: holder.handle })).status).toBe(400)
  })

  test('sees or ends a delegation of others', async () => {
    const holder = await newAccount()
    const id = await share(pds, holder, bob)
    for (const [path, json] of [
      [`delegates/${id}/end`, {}],
      [`shared-accounts/${id}/leave`, {}],
      [`shared-accounts/${id}/accept`, {}],
    ] as const) {
      const [theirs, unknown] = [
        await ownerCall(pds, alice, path, json),
        await ownerCall(pds, alice, path.replace(id, 'dlg_unknown'), json),
      ]
      expect(theirs).toMatchObject({ status: 404 })
      expect(theirs.body).toEqual(unknown.body)
    }
    expect((await ownerCall(pds, alice, `delegates/acts?delegation=${id}`)).body).toEqual({ acts: [] })
    expect(await delegatesOf(holder)).toMatchObject([{ status: 'active' }])
    expect(await ownerCall(pds, bob, `delegates/${id}/end`, {})).toMatchObject({ status: 404 })
    expect(await ownerCall(pds, holder, `shared-accounts/${id}/leave`, {})).toMatchObject({ status: 404 })
  })

  test('shares an account but its holder: an app or an app password does not', async () => {
    const holder = await newAccount()
    const { body } = await holder.call('com.atproto.server.createAppPassword', { json: { name: 'one' } })
    const limited = await logInAgain({ ...holder, password: body.password })
    expect((await ownerCall(pds, limited, 'delegates', { delegate: bob.handle })).status).toBe(401)
    const app = new OAuthClient(pds, loopbackClientId())
    const { access_token: token } = await app.signIn({ identifier: holder.handle, password: holder.password })
    expect((await app.call(token, '/v1/delegates', {}, { json: { delegate: bob.handle } })).status).toBe(403)
    expect((await request(`${pds.url}/v1/delegates`)).status).toBe(401)
  })
})

test.each([
  [{ scope: 'identity:*' }],
  [{ scope: 'account:email?action=manage' }],
  [{ scope: 'account:repo?action=manage' }],
  [{ scope: 'include:app.bsky.authFull' }],
  [{ scope: 'nonsense' }],
  [{ presets: ['everything'] }],
  [{ expiresAt: '2020-01-01T00:00:00.000Z' }],
  [{ expiresAt: 'soon' }],
])('%j cannot be shared', async (terms) => {
  expect(await ownerCall(pds, alice, 'delegates', { delegate: bob.handle, ...terms })).toMatchObject({ status: 400 })
})

test('nobody is invited whose account is deleted meanwhile', async () => {
  const [holder, leaver] = [await newAccount(), await newAccount()]
  using _ = atOneNode(pds, 'the transactions of one node are interrupted')
  using __ = beforeLock(pds, holder.did, () =>
    request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: leaver.did },
      headers: basic('admin', ADMIN_TOKEN),
    }),
  )
  expect(await ownerCall(pds, holder, 'delegates', { delegate: leaver.handle })).toMatchObject({
    status: 400,
    body: { error: { message: 'delegate must be the handle of an active account of this server' } },
  })
  expect(await pds.count('delegation', { did: holder.did })).toBe(0)
})

test('an account is shared with one person once, and with twenty at most', async () => {
  const holder = await newAccount()
  await pds.plant(
    'delegation',
    Array.from({ length: 19 }, (_, i) => ({
      id: `dlg_${i}`,
      did: holder.did,
      delegate_did: `did:plc:${i}`,
      scope: 'atproto',
      status: 'active',
      invited_at: pds.clock.now(),
    })),
  )
  await invite(pds, holder, bob)
  const again = await ownerCall(pds, holder, 'delegates', { delegate: bob.handle })
  expect(again).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining('already') } } })
  const more = await ownerCall(pds, holder, 'delegates', { delegate: alice.handle })
  expect(more).toMatchObject({ status: 400, body: { error: { message: 'An account can have 20 delegates' } } })
})

test('no number of invitations or ended delegations hides one that stands', async () => {
  const [holder, delegate] = [await newAccount(), await newAccount()]
  const id = await share(pds, holder, delegate)
  const later = { scope: 'atproto', invited_at: pds.clock.now() + 1 }
  const row = (name: string, i: number) => ({ ...later, id: `dlg_${name}${i}` })
  await pds.plant(
    'delegation',
    Array.from({ length: 60 }, (_, i) => ({
      ...row('of-strangers', i),
      did: `did:plc:stranger${i}`,
      delegate_did: delegate.did,
      status: 'invited',
    })),
  )
  await pds.plant(
    'delegation',
    Array.from({ length: 120 }, (_, i) => ({
      ...row('ended', i),
      did: holder.did,
      delegate_did: `did:plc:former${i}`,
      status: 'ended',
    })),
  )
  expect(await sharedWith(delegate)).toMatchObject([{ id }])
  expect((await delegatesOf(holder))[0]).toMatchObject({ id, status: 'active' })
})

test('an account invites twenty times a day', async () => {
  const holder = await newAccount()
  for (let i = 0; i < 20; i++) await ownerCall(pds, holder, `delegates/${await invite(pds, holder, bob)}/end`, {})
  expect(await ownerCall(pds, holder, 'delegates', { delegate: bob.handle })).toMatchObject({ status: 429 })
})

test('a password that is reset ends what the account shares; a changed one does not', async () => {
  const holder = await newAccount()
  const id = await share(pds, holder, bob)
  await asAdmin('/xrpc/com.atproto.admin.updateAccountPassword', { did: holder.did, password: 'another good password' })
  const there = await logInAgain({ ...holder, password: 'another good password' })
  expect(await delegatesOf(there)).toMatchObject([{ id, status: 'active' }])
  const { token } = (await asAdmin(`/v1/admin/accounts/${holder.did}/reset-token`, {})).body
  const password = 'a third good password'
  expect(
    (await request(`${pds.url}/xrpc/com.atproto.server.resetPassword`, { json: { token, password } })).status,
  ).toBe(200)
  expect(await delegatesOf(await logInAgain({ ...holder, password }))).toMatchObject([
    { id, status: 'ended', endedBy: 'password_reset' },
  ])
})

test('the operator lists what stands, with its accounts, and ends it: the holder is told, and it is audited', async () => {
  const holder = await newAccount()
  const ids = [await share(pds, holder, alice), await invite(pds, holder, bob)]
  const listed = await asAdmin(`/v1/admin/delegations?did=${holder.did}`)
  expect(listed.body.delegations).toMatchObject([
    { id: ids[0], did: holder.did, delegateDid: alice.did, status: 'active' },
    { id: ids[1], did: holder.did, delegateDid: bob.did, status: 'invited' },
  ])
  const first = await asAdmin(`/v1/admin/delegations?did=${holder.did}&limit=1`)
  const second = await asAdmin(`/v1/admin/delegations?did=${holder.did}&limit=1&cursor=${first.body.cursor}`)
  expect(second.body.delegations).toMatchObject([{ id: ids[1] }])
  expect(await asAdmin(`/v1/admin/delegations/${ids[0]}/end`, {})).toMatchObject({ status: 200 })
  expect(await asAdmin('/v1/admin/delegations/dlg_unknown/end', {})).toMatchObject({ status: 404 })
  expect(await delegatesOf(holder)).toMatchObject([{ status: 'invited' }, { id: ids[0], endedBy: 'operator' }])
  expect((await noticesTo(pds, holder.email)).at(-1)).toMatchObject({
    subject: expect.stringContaining('Someone no longer acts for your account'),
  })
  const { body } = await asAdmin('/v1/admin/audit?action=delegation_ended')
  expect(body.events).toMatchObject([{ subject: holder.did }])
  expect((await request(`${pds.url}/v1/admin/delegations`)).status).toBe(401)
})

test('operators have commands for delegations', async () => {
  const holder = await newAccount()
  const id = await share(pds, holder, alice)
  const run = (...words: string[]) => runProgram([...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const row = new RegExp(`${id} +${holder.handle} +alice.test +accepted`)
  for (const words of [[], [holder.handle]])
    expect(await run('delegation', 'list', ...words)).toMatchObject({ code: 0, out: expect.stringMatching(row) })
  expect((await run('delegation', 'list', bob.handle)).out).not.toContain(id)
  expect(await run('delegation', 'end', id)).toMatchObject({ code: 0, out: 'The delegation has ended.\n' })
  expect(await run('delegation', 'end', 'dlg_unknown')).toMatchObject({ code: 1 })
  expect(await delegatesOf(holder)).toMatchObject([{ id, endedBy: 'operator' }])
})

test('an invitation is open for seven days', async () => {
  const holder = await newAccount()
  const id = await invite(pds, holder, bob)
  pds.clock.advance({ secs: 7 * DAY_SECS })
  const [later, there] = [await logInAgain(bob), await logInAgain(holder)]
  expect(await accept(later, id)).toMatchObject({ status: 404 })
  expect(await delegatesOf(there)).toEqual([])
  expect((await sharedWith(later)).map((one: { id: string }) => one.id)).not.toContain(id)
  expect(await invite(pds, there, bob)).not.toBe(id)
})
