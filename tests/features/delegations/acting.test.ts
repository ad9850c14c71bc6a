/** What an app may do that a delegate has signed in to a shared account, and what ends it. */
import { describe, expect, test } from 'bun:test'
import { TokenRefreshError, type OAuthSession } from '@atproto/oauth-client-node'
import { buildAtprotoLoopbackClientMetadata } from '@atproto/oauth-types'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
import { DelegateBrowser, invite, ownerCall, returned, share } from '../../support/clients/delegate.ts'
import { hiddenFields, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { standardClient } from '../../support/clients/standard-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, formerUrls: ['https://former.example'] } })
const bob = setUp(() => createAccount(pds, 'bob'))
const browser = setUp(() => new DelegateBrowser(pds).signIn(bob))

let count = 0
/** A new account, and the delegation by which Bob acts for it. */
async function sharedAccount(terms: Record<string, unknown> = {}): Promise<{ team: TestAccount; id: string }> {
  const team = await createAccount(pds, `team${++count}`)
  return { team, id: await share(pds, team, bob, terms) }
}

const post = (text = 'for the team') => ({ $type: 'app.bsky.feed.post', text, createdAt: '2026-01-01T00:00:00.000Z' })
const creating = (repo: string, collection = 'app.bsky.feed.post', record: object = post()) => ({
  json: { repo, collection, record: { ...record, $type: collection } },
})
const like = {
  subject: {
    uri: 'at://did:web:x.test/app.bsky.feed.post/1',
    cid: 'bafyreigxvsmdysd4wgmbqgxzx6idhgxqc2m2p3jh2s5v2ipgsvoqhpzwrm',
  },
  createdAt: '2026-01-01T00:00:00.000Z',
}

/** A client made by hand, with tokens that Bob got for the team. */
async function handmade(id: string, scope = 'atproto transition:generic') {
  const app = new OAuthClient(pds, loopbackClientId(scope))
  const url = app.authorizeUrl(await app.requestUri({ scope }))
  const code = returned(await browser.allow(url, id)).get('code')!
  const redeemed = await app.redeem(code)
  return { app, code, status: redeemed.status as number, tokens: redeemed.body }
}

const ownDid = async (): Promise<string> =>
  (await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)).body.did
const actsOf = async (holder: TestAccount) => (await ownerCall(pds, holder, 'delegates/acts')).body.acts

describe('the standard client', () => {
  const clientFor = (scope: string) =>
    standardClient(pds, buildAtprotoLoopbackClientMetadata({ scope, redirect_uris: ['http://127.0.0.1:9/callback'] }))

  async function session(
    id: string,
    handle: string,
    scope: string,
  ): Promise<{ session: OAuthSession; refresh(): Promise<OAuthSession> }> {
    const { client } = clientFor(scope)
    const url = await client.authorize(handle, { scope })
    const { session } = await client.callback(returned(await browser.allow(url.href, id)))
    return { session, refresh: () => client.restore(session.did, true) }
  }

  const write = (session: OAuthSession, collection: string, record: object) =>
    session.fetchHandler('/xrpc/com.atproto.repo.createRecord', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(creating(session.did, collection, record).json),
    })

  test('is signed in to the shared account, within what both allow, and all it does is on record', async () => {
    const { team, id } = await sharedAccount({ presets: ['post', 'upload-images'] })
    const { session: signedIn, refresh } = await session(id, team.handle, 'atproto transition:generic')
    expect(signedIn.did as string).toBe(team.did)
    expect((await signedIn.getTokenInfo()).scope).toBe('atproto repo:app.bsky.feed.post?action=create blob:image/*')
    expect((await write(signedIn, 'app.bsky.feed.post', post())).status).toBe(200)
    const refused = await write(signedIn, 'app.bsky.feed.like', like)
    expect([refused.status, await refused.json()]).toMatchObject([403, { error: 'ScopeMissingError' }])
    const image = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    const uploaded = await signedIn.fetchHandler('/xrpc/com.atproto.repo.uploadBlob', {
      method: 'POST',
      headers: { 'content-type': 'image/png' },
      body: image,
    })
    expect(uploaded.status).toBe(200)
    const again = await refresh()
    expect((await again.getTokenInfo(false)).scope).toBe('atproto repo:app.bsky.feed.post?action=create blob:image/*')
    expect((await write(again, 'app.bsky.feed.post', post('again'))).status).toBe(200)
    const acts = await actsOf(team)
    expect(acts.map(({ type, handle, did }: Record<string, string>) => [type, handle, did])).toEqual(
      ['repo_write', 'blob_upload', 'repo_write', 'app_signed_in', 'accepted', 'invited'].map((type) => [
        type,
        bob.handle,
        bob.did,
      ]),
    )
    expect(acts[0].detail).toMatchObject({ creates: 1, collections: ['app.bsky.feed.post'] })
  })

  test('is told that its session is over once the delegation has ended', async () => {
    const { team, id } = await sharedAccount()
    const { session: signedIn, refresh } = await session(id, team.handle, 'atproto transition:generic')
    expect((await write(signedIn, 'app.bsky.feed.post', post())).status).toBe(200)
    await ownerCall(pds, team, `delegates/${id}/end`, {})
    expect(await thrownBy(refresh())).toThrow(TokenRefreshError)
  })
})

describe('a delegate', () => {
  test('gets no more by asking for more', async () => {
    const { team, id } = await sharedAccount({ presets: ['post'] })
    const scope = 'atproto transition:generic transition:email account:email?action=manage identity:* repo:*'
    const { app, tokens } = await handmade(id, scope)
    expect(tokens).toMatchObject({ sub: team.did, scope: 'atproto repo:app.bsky.feed.post?action=create' })
    const refreshed = await app.refresh(tokens.refresh_token, { parameters: { scope } })
    expect(refreshed.body.scope).toBe('atproto repo:app.bsky.feed.post?action=create')
    const token = refreshed.body.access_token
    expect((await app.call(token, 'com.atproto.server.getSession')).body).not.toHaveProperty('email')
    for (const [nsid, json] of Object.entries({
      'com.atproto.identity.updateHandle': { handle: 'taken.test' },
      'com.atproto.server.updateEmail': { email: 'bob@elsewhere.example' },
      'com.atproto.server.requestEmailUpdate': {},
      'com.atproto.server.createAppPassword': { name: 'mine' },
      'com.atproto.server.deactivateAccount': {},
      'com.atproto.server.requestAccountDelete': {},
      'com.atproto.identity.signPlcOperation': {},
      'com.atproto.repo.applyWrites': {
        repo: team.did,
        writes: [{ $type: 'com.atproto.repo.applyWrites#create', collection: 'app.bsky.feed.like', value: like }],
      },
    }))
      expect([nsid, (await app.call(token, nsid, {}, { json })).status]).toEqual([nsid, 403])
    for (const path of ['delegates', 'shared-accounts', 'app-passwords', 'agents'])
      expect([path, (await app.call(token, `/v1/${path}`)).status]).toEqual([path, 403])
  })

  test('cannot do what only the account itself may, whatever the app was granted', async () => {
    const { team, id } = await sharedAccount()
    const { app, tokens } = await handmade(id)
    const token = (nsid: string, aud = 'did:web:video.example') =>
      app.call(tokens.access_token, `com.atproto.server.getServiceAuth?aud=${aud}&lxm=${nsid}`)
    expect(await token('com.atproto.server.createAccount')).toMatchObject({ status: 400 })
    // The server still takes tokens for a name that it had. What is done with one is on no record.
    for (const aud of [await ownDid(), 'did:web:former.example', 'did:web:former.example#atproto_pds'])
      expect(await token('com.atproto.repo.uploadBlob', aud)).toMatchObject({ status: 400 })
    expect(await token('com.atproto.repo.uploadBlob', 'did:web:localhost')).toMatchObject({ status: 200 })
    expect(
      await app.call(tokens.access_token, 'com.atproto.server.getServiceAuth?aud=did:web:video.example'),
    ).toMatchObject({ status: 400 })
    expect((await actsOf(team))[0]).toMatchObject({
      type: 'service_call',
      detail: { method: 'com.atproto.repo.uploadBlob', service: 'did:web:localhost' },
    })
  })

  test('gets the notifications of the account on no device, which would go on after the end', async () => {
    const { id } = await sharedAccount()
    const { app, tokens } = await handmade(id)
    const json = { serviceDid: 'did:web:push.example', token: 'a', platform: 'ios', appId: 'org.example' }
    const registered = await app.call(tokens.access_token, 'app.bsky.notification.registerPush', {}, { json })
    expect(registered).toMatchObject({ status: 400, body: { message: 'Bad token method' } })
    const method = 'com.atproto.server.getServiceAuth?aud=did:web:push.example&lxm=app.bsky.notification.registerPush'
    expect(await app.call(tokens.access_token, method)).toMatchObject({ status: 400 })
  })

  test('passes nothing on: who acts for a delegate acts for the delegate alone', async () => {
    const { id } = await sharedAccount()
    const carol = await createAccount(pds, 'carol')
    const own = await share(pds, bob, carol)
    const hers = await new DelegateBrowser(pds).signIn(carol)
    const app = new OAuthClient(pds)
    const url = app.authorizeUrl(await app.requestUri())
    const page = await hers.open(url.slice(pds.url.length))
    expect(page.body).toContain(own)
    expect(page.body).not.toContain(id)
    const refused = await hers.answer(page.body, id)
    expect([refused.status, refused.headers.get('location')]).toEqual([200, null])
  })

  test('has an app refused that may do nothing of what it asks for', async () => {
    const { team, id } = await sharedAccount({ presets: ['read'] })
    const app = new OAuthClient(pds, loopbackClientId('atproto repo:app.bsky.feed.like'))
    const url = app.authorizeUrl(await app.requestUri({ scope: 'atproto repo:app.bsky.feed.like' }))
    const { status, body } = await browser.allow(url, id)
    expect(status).toBe(200)
    expect(body).toContain(`You may not do anything of this for @${team.handle}.`)
  })

  test('is asked whom they mean after signing in on the page, and may stay themself', async () => {
    const dora = await createAccount(pds, 'dora')
    const { handle: team } = await sharedAccount().then(async ({ team }) => {
      await share(pds, team, dora)
      return team
    })
    const app = new OAuthClient(pds)
    const fresh = new DelegateBrowser(pds)
    const url = app.authorizeUrl(await app.requestUri({ prompt: 'login' }))
    const asked = await fresh.allow(url, 'other', { identifier: dora.handle, password: dora.password })
    expect(asked.status).toBe(200)
    expect(asked.body).toContain(`as @${team}`)
    const code = returned(await fresh.answer(asked.body, dora.did)).get('code')!
    expect((await app.redeem(code)).body.sub).toBe(dora.did)
  })

  test('who did not ask to stay signed in is signed out once the request is decided, and stays it otherwise', async () => {
    const { team } = await sharedAccount()
    const fay = await createAccount(pds, `fay${++count}`)
    const id = await share(pds, team, fay)
    const { handle: identifier, password } = fay
    const after = async (remember: Record<string, string>, decision: Record<string, string>, account = id) => {
      const app = new OAuthClient(pds)
      const browser = new DelegateBrowser(pds)
      const url = app.authorizeUrl(await app.requestUri())
      const asked = await browser.allow(url, 'other', { identifier, password, ...remember })
      expect(asked.body).toContain(`as @${team.handle}`)
      expect(await browser.signedIn()).toBe(fay.did)
      expect((await browser.answer(asked.body, account, decision)).status).toBe(303)
      return browser.signedIn()
    }
    expect(await after({}, {})).toBeNull()
    expect(await after({}, {}, fay.did)).toBeNull()
    expect(await after({}, { action: 'deny' })).toBeNull()
    expect(await after({ remember: 'yes' }, {})).toBe(fay.did)
  })
})

test('the second factor of another account in the same browser opens no shared account', async () => {
  const { id } = await sharedAccount()
  const mallory = new FactorHolder(pds, await createAccount(pds, 'mallory'))
  await mallory.signIn()
  await mallory.addApp()
  const shared = await new DelegateBrowser(pds).signIn(bob)
  const app = new OAuthClient(pds)
  // The app wants a new sign-in, which Bob does not give.
  pds.clock.advance({ secs: 1 })
  const url = app.authorizeUrl(await app.requestUri({ prompt: 'login' }))
  const page = await shared.allow(url, 'other', {
    identifier: mallory.account.handle,
    password: mallory.account.password,
  })
  const refused = await shared.send('/oauth/authorize', {
    ...hiddenFields(page.body),
    account: id,
    factor_code: mallory.nextCode(),
  })
  expect([refused.status, refused.headers.get('location')]).toEqual([400, null])
})

/** Each is refused at the next request, and cannot refresh. */
describe('an open access token and its session end with', () => {
  const setStatus = (did: string, takedown: object) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: basic('admin', ADMIN_TOKEN),
      json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, takedown },
    })
  const ends: Record<string, (team: TestAccount, id: string, delegate: TestAccount) => Promise<unknown>> = {
    'the holder, who ends it': (team, id) => ownerCall(pds, team, `delegates/${id}/end`, {}),
    'the delegate, who leaves': (_, id, delegate) => ownerCall(pds, delegate, `shared-accounts/${id}/leave`, {}),
    'the operator, who ends it': (_, id) =>
      request(`${pds.url}/v1/admin/delegations/${id}/end`, { headers: basic('admin', ADMIN_TOKEN), json: {} }),
    "the holder's takedown": ({ did }) => setStatus(did, { applied: true }),
    "the delegate's takedown": (_, __, { did }) => setStatus(did, { applied: true }),
    "the holder's deactivation": (team) => team.call('com.atproto.server.deactivateAccount', { json: {} }),
    "the delegate's deactivation": (_, __, delegate) =>
      delegate.call('com.atproto.server.deactivateAccount', { json: {} }),
    'all access to the shared account': ({ did }) =>
      request(`${pds.url}/v1/admin/accounts/${did}/revoke-credentials`, {
        headers: basic('admin', ADMIN_TOKEN),
        json: {},
      }),
    'all access to the account of the delegate': (_, __, { did }) =>
      request(`${pds.url}/v1/admin/accounts/${did}/revoke-credentials`, {
        headers: basic('admin', ADMIN_TOKEN),
        json: {},
      }),
    'the password of the delegate, who resets it': async (_, __, { did }) => {
      const headers = basic('admin', ADMIN_TOKEN)
      const reset = await request(`${pds.url}/v1/admin/accounts/${did}/reset-token`, { headers, json: {} })
      const json = { token: reset.body.token, password: 'another good password' }
      return request(`${pds.url}/xrpc/com.atproto.server.resetPassword`, { json })
    },
    'the account of the delegate': (_, __, { did }) =>
      request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
        headers: basic('admin', ADMIN_TOKEN),
        json: { did },
      }),
  }
  test.each(Object.keys(ends))('%s', async (how) => {
    const delegate = await createAccount(pds, `eve${++count}`)
    const team = await createAccount(pds, `team${++count}`)
    const id = await share(pds, team, delegate)
    const app = new OAuthClient(pds)
    const url = app.authorizeUrl(await app.requestUri())
    const theirs = await new DelegateBrowser(pds).signIn(delegate)
    const { body: tokens } = await app.redeem(returned(await theirs.allow(url, id)).get('code')!)
    const write = () => app.call(tokens.access_token, 'com.atproto.repo.createRecord', {}, creating(team.did))
    expect((await write()).status).toBe(200)
    // An app of its own: a code challenge counts once.
    const lateApp = new OAuthClient(pds)
    const later = lateApp.authorizeUrl(await lateApp.requestUri())
    const code = returned(await theirs.allow(later, id)).get('code')!
    await ends[how]!(team, id, delegate)
    for (const call of [write, () => app.call(tokens.access_token, 'com.atproto.server.getSession')])
      expect((await call()).status).toBe(401)
    expect(await app.refresh(tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await lateApp.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('its last day', async () => {
    const expiresAt = new Date(pds.clock.now() + 600_000).toISOString()
    const { team, id } = await sharedAccount({ expiresAt })
    const { app, tokens } = await handmade(id)
    expect(tokens.expires_in).toBeLessThanOrEqual(600)
    pds.clock.advance({ secs: 601 })
    const call = () => app.call(tokens.access_token, 'com.atproto.repo.createRecord', {}, creating(team.did))
    expect((await call()).status).toBe(401)
    expect((await app.refresh(tokens.refresh_token)).status).toBe(400)
    expect((await ownerCall(pds, team, 'delegates')).body.delegates).toMatchObject([
      { id, status: 'ended', endedBy: 'time' },
    ])
  })
})

describe('a browser that is signed out while an app is let in', () => {
  // Looking up what an app asks for may take as long as its author likes.
  test.each(['its own account', 'a shared one'])('lets it into no account: %s', async (whose) => {
    const dave = await createAccount(pds, `dave${++count}`)
    const team = await createAccount(pds, `team${++count}`)
    const id = await share(pds, team, dave)
    const [theirs, elsewhere] = [new DelegateBrowser(pds), new DelegateBrowser(pds)]
    for (const one of [theirs, elsewhere]) await one.signIn(dave)
    const { form_token } = hiddenFields((await elsewhere.open('/account')).body)
    const app = new OAuthClient(pds)
    const { pathname, search } = new URL(app.authorizeUrl(await app.requestUri()))
    const { body: page } = await theirs.open(pathname + search)
    const before = await pds.count('oauth_code')
    using _ = atOneNode(pds, 'the transactions of one node are interrupted')
    using __ = beforeTransaction(pds, async () => {
      expect((await elsewhere.send('/account/browsers', { account: dave.did, form_token: form_token! })).status).toBe(
        303,
      )
    })
    const answer = await theirs.answer(page, whose === 'a shared one' ? id : dave.did)
    expect([answer.status, answer.headers.get('location'), answer.body]).toEqual([
      401,
      null,
      expect.stringContaining('You have been signed out'),
    ])
    expect(await pds.count('oauth_code')).toBe(before)
  })
})

test('a refresh that races with the end gets nothing that works afterwards', async () => {
  const { team, id } = await sharedAccount()
  const { app, tokens } = await handmade(id)
  const [refreshed, ended] = await Promise.all([
    app.refresh(tokens.refresh_token),
    ownerCall(pds, team, `delegates/${id}/end`, {}),
  ])
  expect(ended.status).toBe(200)
  if (refreshed.status === 200) {
    const { access_token: token, refresh_token: next } = refreshed.body
    expect((await app.call(token, 'com.atproto.repo.createRecord', {}, creating(team.did))).status).toBe(401)
    expect((await app.refresh(next)).status).toBe(400)
  } else expect(refreshed.body.error).toBe('invalid_grant')
})

test('the record outlives the account of the delegate, without its name', async () => {
  const frank = await createAccount(pds, 'frank')
  const team = await createAccount(pds, `team${++count}`)
  const id = await share(pds, team, frank)
  await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    headers: basic('admin', ADMIN_TOKEN),
    json: { did: frank.did },
  })
  const { delegates } = (await ownerCall(pds, team, 'delegates')).body
  expect(delegates).toMatchObject([{ id, status: 'ended', endedBy: 'deletion' }])
  expect(delegates[0]).not.toHaveProperty('did')
  expect((await actsOf(team)).map(({ type }: { type: string }) => type)).toEqual(['ended', 'accepted', 'invited'])
})

test('the activity of an account names no other that is deleted, also under a former handle, and keeps the rest', async () => {
  const gail = await createAccount(pds, 'gail')
  const team = await createAccount(pds, `team${++count}`)
  const other = await createAccount(pds, `team${++count}`)
  await share(pds, team, gail)
  await share(pds, gail, other)
  await ownerCall(pds, team, `delegates/${await invite(pds, team, other)}/end`, {})
  await gail.call('com.atproto.identity.updateHandle', { json: { handle: 'gail2.test' } })
  await share(pds, other, { ...gail, handle: 'gail2.test' })
  const activityOf = async (account: TestAccount) => (await ownerCall(pds, account, 'account/events')).body.events
  const shapeOf = (events: Record<string, unknown>[]) => events.map(({ event }) => event)
  const before = [await activityOf(team), await activityOf(other)]
  expect(JSON.stringify(before)).toContain('gail.test')
  await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    headers: basic('admin', ADMIN_TOKEN),
    json: { did: gail.did },
  })
  const after = [await activityOf(team), await activityOf(other)]
  expect(JSON.stringify(after)).not.toContain('gail')
  expect(JSON.stringify(after)).toContain(other.handle)
  expect(after.map(shapeOf)).toEqual(before.map(shapeOf))
})

test('strangers see a record of the account as any other, and nothing in its tokens names the delegate', async () => {
  const { team, id } = await sharedAccount()
  const { app, tokens } = await handmade(id)
  const written = await app.call(tokens.access_token, 'com.atproto.repo.createRecord', {}, creating(team.did))
  const read = await request(
    `${pds.url}/xrpc/com.atproto.repo.getRecord?${new URLSearchParams({ repo: team.did, collection: 'app.bsky.feed.post', rkey: written.body.uri.split('/').at(-1) })}`,
  )
  expect(JSON.stringify(read.body)).not.toContain(bob.did)
  const claims = Buffer.from(tokens.access_token.split('.')[1], 'base64url').toString()
  for (const secret of [bob.did, bob.handle, id]) {
    expect(claims).not.toContain(secret)
    expect(JSON.stringify(tokens)).not.toContain(secret)
  }
  const own = await new OAuthClient(pds).signIn({ identifier: team.handle, password: team.password })
  const claimsOf = (token: string) => Object.keys(JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()))
  expect(claimsOf(tokens.access_token)).toEqual(claimsOf(own.access_token))
})
