/** What is forbidden at one node is forbidden at another, from the next request on, whatever that one has in memory. */
import { beforeEach, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createPost, registerAgent, revoke, withAgents } from '../../support/clients/registered-agent.ts'
import { createAccount, holder, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useCluster } from '../../support/cluster-world.ts'

let alice: TestAccount
/** The same session, used at the other node. */
let aliceThere: TestAccount
let names = 0
const {
  cluster,
  nodes: [here, there],
} = useCluster(2, { rateLimit: { enabled: false }, agentAuth: withAgents })
beforeEach(async () => {
  alice = await createAccount(here, `user${++names}`)
  aliceThere = holder(there, alice)
  // The other node has seen the account, its session and its key before.
  expect((await aliceThere.call('com.atproto.repo.createRecord', createPost(alice.did))).status).toBe(200)
  expect((await list()).body.records).toHaveLength(1)
})

const list = () => xrpc(there, `com.atproto.repo.listRecords?repo=${alice.did}&collection=app.bsky.feed.post`)
const operator = (nsid: string, json: object) =>
  xrpc(here, `com.atproto.admin.${nsid}`, { json, headers: basic('admin', ADMIN_TOKEN) })
const write = () => aliceThere.call('com.atproto.repo.createRecord', createPost(alice.did))
const refresh = () =>
  xrpc(there, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(alice.refreshJwt) })
const signIn = (password = PASSWORD) =>
  xrpc(there, 'com.atproto.server.createSession', { json: { identifier: alice.handle, password } })

const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')
const codeLine = /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m
const GET_SESSION = 'com.atproto.server.getSession'

/** An app that is used at both nodes. */
async function appOf(account: TestAccount) {
  const [app, appThere] = [here, there].map(
    ({ url }) => new OAuthClient({ url, clock: cluster.clock, publicUrl: here.url }),
  )
  appThere!.key = app!.key
  const tokens = await app!.signIn({ identifier: account.handle, password: PASSWORD })
  const atOther = () => appThere!.call(tokens.access_token, GET_SESSION)
  expect((await atOther()).status).toBe(200)
  return { app: app!, appThere: appThere!, tokens, atOther }
}

test('a takedown: nothing is written, shown, refreshed or opened', async () => {
  const { atOther } = await appOf(alice)
  const down = { subject: { $type: 'com.atproto.admin.defs#repoRef', did: alice.did }, takedown: { applied: true } }
  expect((await operator('updateSubjectStatus', down)).status).toBe(200)
  expect(await write()).toMatchObject({ status: 401, body: { error: 'AccountTakedown' } })
  expect((await list()).status).toBe(400)
  expect(await xrpc(there, `com.atproto.sync.getRepo?did=${alice.did}`)).toMatchObject({
    status: 400,
    body: { error: 'RepoTakendown' },
  })
  expect((await refresh()).status).toBe(401)
  expect(await signIn()).toMatchObject({ status: 401, body: { error: 'AccountTakedown' } })
  expect((await atOther()).status).toBe(401)
})

test('the takedown of a record that is in the pages and blocks of the other node', async () => {
  const { uri, cid } = (await list()).body.records[0]
  const down = { subject: { $type: 'com.atproto.repo.strongRef', uri, cid }, takedown: { applied: true } }
  expect((await operator('updateSubjectStatus', down)).status).toBe(200)
  expect((await list()).body.records).toEqual([])
  const [collection, rkey] = uri.split('/').slice(-2)
  expect(
    (await xrpc(there, `com.atproto.repo.getRecord?repo=${alice.did}&collection=${collection}&rkey=${rkey}`)).status,
  ).toBe(400)
})

test('the deletion of an account', async () => {
  const { atOther } = await appOf(alice)
  expect((await operator('deleteAccount', { did: alice.did })).status).toBe(200)
  expect((await write()).status).toBeGreaterThanOrEqual(400)
  expect((await list()).status).toBe(400)
  expect((await refresh()).status).toBe(400)
  expect((await signIn()).status).toBe(401)
  expect((await atOther()).status).toBe(401)
})

test('another password: the sessions of the old one, and the old one', async () => {
  expect((await signIn()).status).toBe(200)
  expect((await operator('updateAccountPassword', { did: alice.did, password: 'another long password' })).status).toBe(
    200,
  )
  expect((await refresh()).status).toBe(400)
  expect((await signIn()).status).toBe(401)
  expect((await signIn('another long password')).status).toBe(200)
})

test('an app password that is revoked', async () => {
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'client' } })
  const session = await logIn(there, alice, body.password)
  const next = () =>
    xrpc(there, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(session.refreshJwt) })
  expect((await next()).status).toBe(200)
  expect((await alice.call('com.atproto.server.revokeAppPassword', { json: { name: 'client' } })).status).toBe(200)
  expect((await next()).status).toBe(400)
  expect((await signIn(body.password)).status).toBe(401)
})

test('an app that is signed out', async () => {
  const { app, tokens, atOther } = await appOf(alice)
  expect((await app.revoke(tokens.refresh_token)).status).toBe(200)
  expect((await atOther()).status).toBe(401)
})

test('a proof that was used, also at both nodes at once', async () => {
  const { app, appThere, tokens } = await appOf(alice)
  expect((await app.call(tokens.access_token, GET_SESSION)).status).toBe(200)
  const again = await appThere.callOnce(tokens.access_token, GET_SESSION, { rawProof: app.lastProof })
  expect(again.status).toBe(401)
  expect(again.headers.get('www-authenticate')).toContain('the proof has already been used')

  app.nonce = appThere.nonce
  for (let round = 0; round < 5; round++) {
    const rawProof = app.proof('GET', `${here.url}/xrpc/${GET_SESSION}`, { ath: hashOf(tokens.access_token) })
    const answers = await Promise.all(
      [app, appThere].map((one) => one.callOnce(tokens.access_token, GET_SESSION, { rawProof })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401])
  }
})

test('an agent that is ended, also in the middle of a request', async () => {
  const agent = await registerAgent(there, alice)
  expect((await agent.call('com.atproto.repo.createRecord', createPost(alice.did))).status).toBe(200)
  const { readable, writable } = new TransformStream<Uint8Array>()
  const body = writable.getWriter()
  const upload = agent.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: readable,
    headers: { 'content-type': 'image/png' },
  })
  await body.write(new Uint8Array(1000))
  // The node has let the agent in, and reads.
  const incoming = join(there.dataDir, 'blobs/.incoming')
  await until(() => readdirSync(incoming).length > 0)
  expect(await revoke(here, agent)).toBe(1)
  expect((await agent.call('com.atproto.repo.createRecord', createPost(alice.did))).status).toBe(401)
  await body.close()
  expect((await upload).status).toBe(401)
})

test('a code that was used, also at both nodes at once', async () => {
  await xrpc(here, 'com.atproto.server.requestPasswordReset', { json: { email: alice.email } })
  for (const node of cluster.nodes) await node.runSteps()
  const token = cluster.nodes
    .flatMap(({ mails }) => mails)
    .map(({ text }) => codeLine.exec(text)?.[0])
    .findLast(Boolean)!
  const answers = await Promise.all(
    [here, there, here, there].map((node, i) =>
      xrpc(node, 'com.atproto.server.resetPassword', { json: { token, password: `a long password ${i}` } }),
    ),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400])
})

test('a document of an identity that one node asked for before it changed is not kept after it', async () => {
  const { plc } = there.ctx
  const gate = Promise.withResolvers<void>()
  using asked = spyOn(plc, 'document')
  asked.mockImplementationOnce(async (did) => {
    const document = await plc.document(did)
    await gate.promise
    return document
  })
  const identity = (node: TestPds) => xrpc(node, `com.atproto.identity.resolveIdentity?identifier=${alice.did}`)
  cluster.clock.advance({ days: 2 })
  const before = identity(there)
  await until(() => asked.mock.calls.length > 0)
  const session = await logIn(here, alice, PASSWORD)
  const handle = `renamed-${alice.handle}`
  expect((await holder(here, session).call('com.atproto.identity.updateHandle', { json: { handle } })).status).toBe(200)
  gate.resolve()
  await before
  for (const node of [here, there])
    expect((await identity(node)).body).toMatchObject({ handle, didDoc: { alsoKnownAs: [`at://${handle}`] } })
})
