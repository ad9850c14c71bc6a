/**
 * What an app may do with what it was granted: each method asks for its scope, and some are closed to apps whatever
 * they hold.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
import { answerOf, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

let alice: TestAccount
const { pds, author } = useWorld({ author: true, config: { rateLimit: { enabled: false } } })
beforeAll(async () => {
  pds.dns.setTexts('_lexicon.notes.test', `did=${author.did}`)
  alice = await createAccount(pds, 'alice')
  await alice.call('com.atproto.repo.applyWrites', {
    json: { repo: alice.did, validate: false, writes: [write('create', 'changed'), write('create', 'doomed')] },
  })
})

let handles = 0
/** By DID, for the handle changes. */
const person = () => ({ identifier: alice.did, password: alice.password })

async function app(...scopes: string[]) {
  const scope = ['atproto', ...scopes].join(' ')
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const tokens = await client.signIn(person(), { scope })
  const call = (nsid: string, init: Parameters<typeof request>[1] = {}) =>
    client.call(tokens.access_token, nsid, {}, init)
  return { client, tokens, call }
}

const NOTE = 'test.notes.note'
const record = (text = 'a note') => ({ $type: NOTE, text })
const write = (action: string, rkey: string) => ({
  $type: `com.atproto.repo.applyWrites#${action}`,
  collection: NOTE,
  rkey,
  ...(action === 'delete' ? {} : { value: record() }),
})

describe('a method that needs a scope', () => {
  interface Row {
    nsid: string
    input?: object
    /** The least that does. */
    needs: string
    /** Others that almost do. */
    lacks: string[]
  }
  const repo = () => alice.did
  const rows: Record<string, () => Row> = {
    createRecord: () => ({
      nsid: 'com.atproto.repo.createRecord',
      input: { repo: repo(), collection: NOTE, validate: false, record: record() },
      needs: `repo:${NOTE}?action=create`,
      lacks: [`repo:${NOTE}?action=update&action=delete`, 'repo:test.notes.other', 'blob:*/*'],
    }),
    putRecord: () => ({
      nsid: 'com.atproto.repo.putRecord',
      input: { repo: repo(), collection: NOTE, rkey: 'put', validate: false, record: record() },
      needs: `repo:${NOTE}?action=create&action=update`,
      lacks: [`repo:${NOTE}?action=create`, `repo:${NOTE}?action=update`],
    }),
    deleteRecord: () => ({
      nsid: 'com.atproto.repo.deleteRecord',
      input: { repo: repo(), collection: NOTE, rkey: 'gone' },
      needs: `repo:${NOTE}?action=delete`,
      lacks: [`repo:${NOTE}?action=create&action=update`],
    }),
    applyWrites: () => ({
      nsid: 'com.atproto.repo.applyWrites',
      input: {
        repo: repo(),
        validate: false,
        writes: [write('create', 'new'), write('update', 'changed'), write('delete', 'doomed')],
      },
      needs: `repo:${NOTE}`,
      lacks: [`repo:${NOTE}?action=create&action=update`, `repo:${NOTE}?action=delete`],
    }),
    requestPlcOperationSignature: () => ({
      nsid: 'com.atproto.identity.requestPlcOperationSignature',
      needs: 'identity:*',
      lacks: ['identity:handle', 'transition:generic'],
    }),
    updateHandle: () => ({
      nsid: 'com.atproto.identity.updateHandle',
      input: { handle: `renamed${++handles}.test` },
      needs: 'identity:handle',
      lacks: ['transition:generic', 'account:status?action=manage'],
    }),
    'updateHandle with all of the identity': () => ({
      nsid: 'com.atproto.identity.updateHandle',
      input: { handle: `renamed${++handles}.test` },
      needs: 'identity:*',
      lacks: ['transition:generic'],
    }),
    requestEmailConfirmation: () => ({
      nsid: 'com.atproto.server.requestEmailConfirmation',
      needs: 'account:email?action=manage',
      lacks: ['account:email', 'transition:email', 'account:repo?action=manage'],
    }),
  }
  test.each(Object.keys(rows))('%s is done with it and refused without', async (name) => {
    const { nsid, input, needs, lacks } = rows[name]!()
    const init = input === undefined ? { method: 'POST' } : { json: input }
    for (const scope of lacks) {
      const answer = await (await app(scope)).call(nsid, init)
      expect({ scope, status: answer.status, error: answer.body.error }).toEqual({
        scope,
        status: 403,
        error: 'ScopeMissingError',
      })
      expect(answer.body.message).toMatch(/^Missing required scope "[^"]+"$/)
    }
    expect({ needs, status: (await (await app(needs)).call(nsid, init)).status }).toEqual({ needs, status: 200 })
  })

  test('uploadBlob goes by the declared type', async () => {
    const upload = async (scope: string, type: string) =>
      (
        await (
          await app(scope)
        ).call('com.atproto.repo.uploadBlob', {
          method: 'POST',
          headers: { 'content-type': type },
          body: new Uint8Array([1, 2, 3]),
        })
      ).status
    expect(await upload('blob:image/*', 'image/png')).toBe(200)
    expect(await upload('blob:image/*', 'video/mp4')).toBe(403)
    expect(await upload('blob:image/png', 'image/jpeg')).toBe(403)
    expect(await upload('repo:*', 'image/png')).toBe(403)
    expect(await upload('transition:generic', 'video/mp4')).toBe(200)
  })

  test('getServiceAuth mints for what the grant names, and never for what is the holder’s alone', async () => {
    const mint = async (scopes: string[], query: Record<string, string>) =>
      (await (await app(...scopes)).call(`com.atproto.server.getServiceAuth?${new URLSearchParams(query)}`)).status
    const granted = 'rpc:app.bsky.feed.getTimeline?aud=did:web:api.example.com%23appview'
    const aud = 'did:web:api.example.com#appview'
    expect(await mint([granted], { aud, lxm: 'app.bsky.feed.getTimeline' })).toBe(200)
    expect(await mint([granted], { aud: 'did:web:api.example.com', lxm: 'app.bsky.feed.getTimeline' })).toBe(403)
    expect(await mint([granted], { aud, lxm: 'app.bsky.feed.getFeed' })).toBe(403)
    expect(await mint([granted], { aud: 'did:web:other.example.com', lxm: 'app.bsky.feed.getTimeline' })).toBe(403)
    expect(await mint([granted], { aud: 'did:web:api.example.com' })).toBe(403)
    expect(
      await mint(['transition:generic'], {
        aud: 'did:web:api.example.com',
        lxm: 'com.atproto.server.createAppPassword',
      }),
    ).toBeGreaterThanOrEqual(400)
  })

  test('getServiceAuth mints for direct messages with their own scope alone, however the method is asked for', async () => {
    const query = (lxm: string) => `com.atproto.server.getServiceAuth?aud=did:web:api.example.com&${lxm}`
    const [social, chatting] = [
      await app('transition:generic'),
      await app('transition:generic', 'transition:chat.bsky'),
    ]
    for (const lxm of ['lxm=chat.bsky.convo.getLog', 'lxm=&lxm=chat.bsky.convo.getLog', 'lxm=Chat.bsky.convo.getLog']) {
      expect({ lxm, status: (await social.call(query(lxm))).status }).toEqual({ lxm, status: 403 })
      expect({ lxm, status: (await chatting.call(query(lxm))).status }).toEqual({ lxm, status: 200 })
    }
  })
})

test('what belongs to the holder alone is closed to an app that holds everything', async () => {
  const scopes = [
    'transition:generic',
    'transition:email',
    'transition:chat.bsky',
    'repo:*',
    'blob:*/*',
    'account:email?action=manage',
    'account:repo?action=manage',
    'account:status?action=manage',
    'identity:*',
  ]
  const { call } = await app(...scopes)
  const closed: [string, Parameters<typeof request>[1]?][] = [
    ['com.atproto.server.activateAccount', { method: 'POST' }],
    ['com.atproto.server.deactivateAccount', { json: {} }],
    ['com.atproto.server.createAppPassword', { json: { name: 'x' } }],
    ['com.atproto.server.listAppPasswords'],
    ['com.atproto.server.revokeAppPassword', { json: { name: 'x' } }],
    ['com.atproto.server.requestAccountDelete', { method: 'POST' }],
    ['com.atproto.server.requestEmailUpdate', { method: 'POST' }],
    ['com.atproto.server.updateEmail', { json: { email: 'x@example.com' } }],
    ['com.atproto.server.getAccountInviteCodes'],
  ]
  for (const [nsid, init] of closed)
    expect({ nsid, status: (await call(nsid, init)).status }).toEqual({ nsid, status: 403 })
  for (const nsid of [
    'com.atproto.server.getSession',
    'com.atproto.server.checkAccountStatus',
    'com.atproto.identity.getRecommendedDidCredentials',
  ])
    expect({ nsid, status: (await call(nsid)).status }).toEqual({ nsid, status: 200 })
})

describe('a permission set', () => {
  const publish = (...collections: string[][]) =>
    author.publish('test.notes.auth', {
      lexicon: 1,
      id: 'test.notes.auth',
      defs: {
        main: {
          type: 'permission-set',
          title: 'Your <b>notes</b>',
          detail: 'All of them',
          permissions: collections.map((collection) => ({ type: 'permission', resource: 'repo', collection })),
        },
      },
    })

  test('is shown as what it comes to, granted as that, and follows its author at the next refresh', async () => {
    await publish([NOTE])
    const scope = 'atproto include:test.notes.auth'
    const client = new OAuthClient(pds, loopbackClientId(scope))
    const requestUri = await client.requestUri({ scope })
    const { body: page } = await request(client.authorizeUrl(requestUri))
    expect(page).toContain('Create, change and delete test.notes.note')
    expect(page).not.toContain('<b>notes')
    const { body: tokens } = await client.redeem(answerOf(await client.decide(requestUri, person())).get('code')!)
    expect(tokens.scope).toBe(`atproto repo:${NOTE}`)
    const create = (token: string, collection: string) =>
      client.call(
        token,
        'com.atproto.repo.createRecord',
        {},
        { json: { repo: alice.did, collection, validate: false, record: { $type: collection } } },
      )
    expect(await create(tokens.access_token, NOTE)).toMatchObject({ status: 200 })
    expect(await create(tokens.access_token, 'test.notes.list')).toMatchObject({ status: 403 })

    await publish([NOTE, 'test.notes.list'], ['test.elsewhere.thing'])
    pds.clock.advance({ days: 1, secs: 1 })
    const { body: refreshed } = await client.refresh(tokens.refresh_token)
    const { body: current } = refreshed.scope.includes('list')
      ? { body: refreshed }
      : await client.refresh(refreshed.refresh_token)
    expect(current.scope).toBe('atproto repo?collection=test.notes.list&collection=test.notes.note')
    expect(await create(current.access_token, 'test.notes.list')).toMatchObject({ status: 200 })
  })
})

describe('the operator', () => {
  test('ends what an app holds with a takedown, at the next request', async () => {
    const bob = await createAccount(pds, 'bob')
    const client = new OAuthClient(pds)
    const tokens = await client.signIn({ identifier: bob.handle, password: bob.password })
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: bob.did }
    const takedown = (applied: boolean) =>
      request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
        json: { subject, takedown: { applied } },
        headers: basic('admin', ADMIN_TOKEN),
      })
    expect(await takedown(true)).toMatchObject({ status: 200 })
    expect(await client.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({
      status: 401,
      body: { error: 'invalid_token' },
    })
    expect(await client.refresh(tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const again = await client.decide(await client.requestUri(), { identifier: bob.handle, password: bob.password })
    expect(answerOf(again).get('error')).toBe('access_denied')
    await takedown(false)
    expect(await client.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({ status: 401 })
  })

  test('chooses how long an access token lives', async () => {
    await using brief = await startPds({ oauth: { accessTokenTtlSecs: 1 } })
    const carol = await createAccount(brief, 'carol')
    const client = new OAuthClient(brief)
    const tokens = await client.signIn({ identifier: carol.handle, password: carol.password })
    expect(tokens.expires_in).toBe(1)
    brief.clock.advance({ secs: 2 })
    expect(await client.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({
      status: 401,
      body: { error: 'ExpiredToken' },
    })
    expect(await client.refresh(tokens.refresh_token)).toMatchObject({ status: 200 })
  })
})
