/** All kinds of credentials against all methods of spaces: none opens a space but a grant that names it. */
import { beforeAll, expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { DelegateBrowser, returned, share } from '../../support/clients/delegate.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { registerAgent, withAgents } from '../../support/clients/registered-agent.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { spaceApp } from '../../support/clients/space-app.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const NOTE = 'test.forum.note'
const EVERYTHING = 'space:*?authority=*&collection=*&manage=create&manage=update&manage=delete'
const { pds } = useWorld({
  config: {
    spaces: { enabled: true },
    development: false,
    rateLimit: { enabled: false },
    signup: { requireConfirmedAddress: false },
    agentAuth: { ...withAgents, grantedScopes: ['atproto', 'transition:generic', EVERYTHING] },
  },
})
let alice: TestAccount
let place: { space: string; repo: string }
type Call = (nsid: string, init?: Parameters<typeof request>[1]) => Promise<Answer>
const withHeaders =
  (headers: Record<string, string>): Call =>
  (path, init = {}) =>
    request(`${pds.url}/xrpc/${path}`, { ...init, headers: { ...headers, ...(init.headers as object) } })

/** Methods by name, with what a permitted caller would ask. */
const methods: Record<string, () => [params: object, json?: object]> = {
  createRecord: () => [{}, { ...place, collection: NOTE, record: { text: 'x' } }],
  putRecord: () => [{}, { ...place, collection: NOTE, rkey: 'b', record: { text: 'x' } }],
  deleteRecord: () => [{}, { ...place, collection: NOTE, rkey: 'gone' }],
  applyWrites: () => [
    {},
    { ...place, writes: [{ $type: 'com.atproto.space.applyWrites#create', collection: NOTE, value: {} }] },
  ],
  getRecord: () => [{ ...place, collection: NOTE, rkey: 'a' }],
  listRecords: () => [place],
  listRepoOps: () => [place],
  getLatestCommit: () => [place],
  listBlobs: () => [place],
  getBlob: () => [{ ...place, cid: blobCid }],
  listSpaces: () => [{}],
}
let blobCid: string
const callers: Record<string, Call> = {}
const permitted: Record<string, Call> = {}

beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
  place = { space: `at://${alice.did}/space/test.forum.space/a`, repo: alice.did }
  const member = await spaceApp(pds, alice, EVERYTHING, 'blob:*/*')
  permitted['an app with a grant that names spaces'] = member.call
  const { body } = await member.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from('a file'),
  })
  blobCid = body.blob.ref.$link
  const file = { ...place, collection: NOTE, rkey: 'a', record: { file: body.blob } }
  expect((await member.post('createRecord', file)).status).toBe(200)

  callers['nobody'] = withHeaders({})
  callers['a session of the password'] = alice.call
  for (const [name, json] of Object.entries({
    'an app password': {},
    'an app password with privileges': { privileged: true },
    'an app password with scopes': { scope: 'transition:generic repo:* blob:*/*' },
  })) {
    const created =
      'scope' in json
        ? await request(`${pds.url}/v1/app-passwords`, {
            json: { name, ...json },
            headers: bearer(alice.accessJwt),
          })
        : await alice.call('com.atproto.server.createAppPassword', { json: { name, ...json } })
    expect([name, created.status]).toEqual([name, 200])
    callers[name] = (await logIn(pds, alice, created.body.password)).call
  }
  for (const scopes of [
    ['transition:generic', 'transition:chat.bsky', 'transition:email'],
    ['repo:*', 'blob:*/*', 'rpc:*?aud=*', 'account:repo?action=manage'],
  ])
    callers[`an app with ${scopes[0]}`] = (await spaceApp(pds, alice, ...scopes)).call
  callers['an app with a grant for other spaces'] = (
    await spaceApp(
      pds,
      alice,
      'space:test.other.space?authority=*&collection=*',
      `space:test.forum.space?skey=b&collection=*`,
    )
  ).call
  callers['an agent'] = (
    await registerAgent(pds, alice, { scopes: ['atproto', 'transition:generic', EVERYTHING] })
  ).call
  callers['another account'] = (await createAccount(pds, 'bob')).call

  const dora = await createAccount(pds, 'dora')
  const id = await share(pds, alice, dora)
  const scope = `atproto transition:generic ${EVERYTHING}`
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const browser = await new DelegateBrowser(pds).signIn(dora)
  const allowed = await browser.allow(client.authorizeUrl(await client.requestUri({ scope })), id)
  const { body: tokens } = await client.redeem(returned(allowed).get('code')!)
  expect(tokens.scope).not.toContain('space:')
  callers['an app of a delegate'] = (nsid, init = {}) => client.call(tokens.access_token, nsid, {}, init)

  const aud = (await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)).body.did
  const minted = await alice.call(`com.atproto.server.getServiceAuth?aud=${aud}&lxm=com.atproto.repo.uploadBlob`)
  callers['a service with a token of the account'] = withHeaders(bearer(minted.body.token))
  callers['a wallet'] = withHeaders(bearer(await walletSession(pds, alice.did)))
  callers['an operator with the admin token'] = withHeaders(basic('admin', ADMIN_TOKEN))
  callers['an operator with a bearer token'] = withHeaders(bearer(ADMIN_TOKEN))
  callers['an operator with a role'] = withHeaders(bearer((await roleHolder(pds, 'olga', 'owner')).token))
  callers['a refresh token of a session'] = withHeaders(bearer(alice.refreshJwt))
})

const ask = (call: Call, name: string) => {
  const [params, json] = methods[name]!()
  return call(`com.atproto.space.${name}?${new URLSearchParams(params as Record<string, string>)}`, json && { json })
}

test('the table has every method that is served', () => {
  const served = features
    .find(({ name }) => name === 'spaces')!
    .routes!.map((endpoint) => ('nsid' in endpoint ? endpoint.nsid : endpoint.kind))
  expect(
    Object.keys(methods)
      .map((name) => `com.atproto.space.${name}`)
      .toSorted(),
  ).toEqual(served.toSorted())
})

test('a grant that names spaces opens all of them', async () => {
  for (const [who, call] of Object.entries(permitted))
    for (const name of Object.keys(methods)) {
      const { status, headers } = await ask(call, name)
      expect({ who, name, status }).toEqual({ who, name, status: 200 })
      // What is read is kept in no cache.
      if (methods[name]!()[1] === undefined)
        expect([name, headers.get('cache-control')]).toEqual([name, 'private, no-store'])
    }
})

test('nobody else is let in, and no answer has anything of a space', async () => {
  const before = await pds.rows('space_repo', {}, ['rev', 'record_count'])
  expect(Object.keys(callers).length).toBeGreaterThanOrEqual(17)
  for (const [who, call] of Object.entries(callers))
    for (const name of Object.keys(methods)) {
      const { status, body } = await ask(call, name)
      const expected = [400, 401, 403]
      expect({ who, name, status, isRefused: expected.includes(status) }).toEqual({
        who,
        name,
        status,
        isRefused: true,
      })
      expect({
        who,
        name,
        more: Object.keys(body).filter((key) => !/^(?:error(?:_description)?|message)$/.test(key)),
      }).toEqual({
        who,
        name,
        more: [],
      })
    }
  expect(await pds.rows('space_repo', {}, ['rev', 'record_count'])).toEqual(before)
})

test('a session of an account that is taken down reads nothing either', async () => {
  const eve = await createAccount(pds, 'eve')
  const own = { space: `at://${eve.did}/space/test.forum.space/a`, repo: eve.did }
  const app = await spaceApp(pds, eve, EVERYTHING)
  expect((await app.post('createRecord', { ...own, collection: NOTE, rkey: 'a', record: {} })).status).toBe(200)
  const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: eve.did }, takedown: { applied: true } },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(status).toBe(200)
  const leaving = await logIn(pds, eve, eve.password, { allowTakendown: true })
  for (const call of [app.call, leaving.call])
    for (const path of ['listRecords', 'listRepoOps', 'getLatestCommit', 'listBlobs'])
      expect((await call(`com.atproto.space.${path}?${new URLSearchParams(own)}`)).status).toBeOneOf([400, 401, 403])
})

test('no app password and no delegation can be given a scope of spaces', async () => {
  const headers = bearer(alice.accessJwt)
  for (const scope of [EVERYTHING, `transition:generic ${EVERYTHING}`, 'space:*'])
    for (const [path, json] of [
      ['app-passwords', { name: `x ${scope.length}`, scope }],
      ['delegates', { delegate: 'dora.test', scope }],
    ] as const) {
      const { status } = await request(`${pds.url}/v1/${path}`, { json, headers })
      expect({ path, scope, status }).toEqual({ path, scope, status: 400 })
    }
})
