/** Whoever is signed out at one server is signed out at all of them. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, xrpc } from '../../support/clients/account.ts'
import type { TestCluster } from '../../support/servers/cluster.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { useCluster } from '../../support/cluster-world.ts'

const { cluster } = useCluster(2, { rateLimit: { enabled: false } })

test('a session that ends at one node opens nothing at another, which has just let it in', async () => {
  const [one, other] = cluster.nodes as [TestCluster['nodes'][0], TestCluster['nodes'][0]]
  const account = await createAccount(one, 'alice')
  const kept = await logIn(other, account, account.password)
  const record = { $type: 'app.bsky.feed.post', text: 'Hello!', createdAt: '2026-01-01T00:00:00.000Z' }
  const calls = (accessJwt: string) => [
    xrpc(other, 'com.atproto.server.getSession', { headers: bearer(accessJwt) }),
    xrpc(other, 'com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: 'app.bsky.feed.post', record },
      headers: bearer(accessJwt),
    }),
    xrpc(other, 'com.atproto.server.createAppPassword', {
      json: { name: crypto.randomUUID() },
      headers: bearer(accessJwt),
    }),
  ]
  const ended = { status: 400, body: { error: 'ExpiredToken' } }
  for (const call of calls(account.accessJwt)) expect((await call).status).toBe(200)
  await xrpc(one, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(account.refreshJwt) })
  for (const call of calls(account.accessJwt)) expect(await call).toMatchObject(ended)
  for (const call of calls(kept.accessJwt)) expect((await call).status).toBe(200)
  await request(`${one.url}/v1/admin/accounts/${account.did}/revoke-credentials`, {
    method: 'POST',
    headers: basic('admin', ADMIN_TOKEN),
  })
  for (const call of calls(kept.accessJwt)) expect(await call).toMatchObject(ended)
})
