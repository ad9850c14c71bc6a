/** Who has access to an account, one by one, and the end of each. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, xrpc } from '../../support/clients/account.ts'
import { confirmedAgent, withClaims } from '../../support/clients/agent.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: { rateLimit: { enabled: false }, agentAuth: withClaims(['atproto', 'repo:app.bsky.feed.post']) },
})
const olivia = setUp(() => roleHolder(pds, 'olivia', 'owner'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))

interface Access {
  id: string
  kind: string
  name: string | null
}

const pathOf = ({ did }: { did: string }) => `/v1/admin/accounts/${did}/access`
const accessOf = async (account: { did: string }): Promise<Access[]> =>
  (await mona.operate(pathOf(account))).body.access
const end = (account: { did: string }, id: string, by = mona) =>
  by.operate(`${pathOf(account)}/end`, { json: { id }, headers: { 'x-admin-reason': 'a%20theft' } })
const run = (words: string[]) => runProgram([...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })

test('each kind of access is listed, ends alone, and is in the audit log with the reason', async () => {
  const alice = await createAccount(pds, 'alice')
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'a: phone' } })
  const phone = await logIn(pds, alice, body.password)
  const app = new OAuthClient(pds)
  const tokens = await app.signIn({ identifier: alice.did, password: alice.password })
  const agent = await confirmedAgent(pds, alice)
  const wallet = await walletSession(pds, alice.did)
  const browser = new FactorHolder(pds, alice)
  await browser.signIn()

  const write = (token: string) =>
    xrpc(pds, 'com.atproto.repo.createRecord', {
      headers: bearer(token),
      json: {
        repo: alice.did,
        collection: 'app.bsky.feed.post',
        record: { $type: 'app.bsky.feed.post', text: 'x', createdAt: '2026-01-01T00:00:00Z' },
      },
    })
  const works: Record<string, () => Promise<number>> = {
    session: async () => (await alice.call('com.atproto.server.getSession')).status,
    app: async () => (await app.call(tokens.access_token, 'com.atproto.server.getSession')).status,
    wallet: async () => (await request(`${pds.url}/v1/agents`, { headers: bearer(wallet) })).status,
    browser: async () => (await browser.browser.open('/account')).status,
    agent: async () => (await write(agent.accessToken)).status,
    'app-password': async () => (await phone.call('com.atproto.server.getSession')).status,
  }
  const listed = await accessOf(alice)
  expect(new Set(listed.map(({ kind }) => kind))).toEqual(new Set(Object.keys(works)))
  const own = ({ kind, name }: Access) => kind !== 'session' || name === null
  for (const { id, kind } of listed.filter(own)) {
    const before = await works[kind]!()
    const answer = await end(alice, id)
    expect([kind, answer.status, answer.body.id]).toEqual([kind, 200, id])
    expect([kind, await works[kind]!()]).not.toEqual([kind, before])
    expect((await end(alice, id)).status).toBe(404)
  }
  expect(await accessOf(alice)).toEqual([])
  const { events } = (await mona.operate(`/v1/admin/audit?subject=${alice.did}`)).body
  expect(events.filter(({ action }: { action: string }) => action === 'access_ended')).toHaveLength(6)
  expect(events[0]).toMatchObject({ actor: `operator:${mona.did}`, reason: 'a theft' })
})

test('nothing ends of another account, of a higher role, or for a role that may not', async () => {
  const bob = await createAccount(pds, 'bob')
  const carol = await createAccount(pds, 'carol')
  const [session] = await accessOf(bob)
  expect((await end(carol, session!.id)).status).toBe(404)
  for (const id of ['', 'session', 'session:', 'nothing:a', 'constructor:a', 'session:\u0000'])
    expect([id, (await end(bob, id)).status < 500]).toEqual([id, true])
  expect((await end(bob, session!.id, ivo)).status).toBe(403)
  expect((await ivo.operate(pathOf(bob))).status).toBe(403)
  const [owners] = await accessOf(olivia)
  expect((await end(olivia, owners!.id)).status).toBe(403)
  expect((await olivia.call('com.atproto.server.getSession')).status).toBe(200)
  expect((await bob.call('com.atproto.server.getSession')).status).toBe(200)
})

test('a page and commands list and end it', async () => {
  const dave = await createAccount(pds, 'dave')
  const desk = new ConsoleBrowser(pds)
  await desk.signIn(mona.did)
  const { body } = await desk.open(`/admin/account?did=${dave.did}`)
  const [, id = ''] = /name="id" value="(session:[^"]+)"/.exec(body) ?? []
  expect((await run(['account', 'sessions', 'dave'])).out).toContain(id)
  expect((await desk.act('end-one-access', { did: dave.did, id })).body).toContain('no longer has access')
  expect((await dave.call('com.atproto.server.getSession')).status).not.toBe(200)

  await logIn(pds, dave, dave.password)
  const [next] = await accessOf(dave)
  expect(await run(['account', 'end-sessions', 'dave', next!.id])).toMatchObject({
    code: 0,
    out: expect.stringContaining('no longer has access to dave.test'),
  })
  expect((await run(['account', 'end-sessions', 'dave', next!.id])).code).toBe(1)
  expect(await accessOf(dave)).toEqual([])
})
