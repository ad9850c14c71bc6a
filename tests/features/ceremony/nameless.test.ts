/**
 * An account that has not taken a handle yet: everything that names accounts names it by its DID, or as
 * `handle.invalid`.
 */
import { AtpAgent } from '@atproto/api'
import { beforeAll, expect, test } from 'bun:test'
import { PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bear, forCeremonies, operate } from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: forCeremonies })
const alice = setUp(() => bear(pds, 'alice'))
const agent = setUp(() => new AtpAgent({ service: pds.url }))
beforeAll(async () => {
  await agent.login({ identifier: alice.did, password: PASSWORD })
})

const ask = (path: string) => xrpc(pds, path, { headers: bearer(agent.session!.accessJwt) })

test('its holder uses it', async () => {
  await agent.post({ text: 'Nameless' })
  expect(
    (await agent.com.atproto.repo.listRecords({ repo: alice.did, collection: 'app.bsky.feed.post' })).data.records,
  ).toHaveLength(1)
  expect(await ask('com.atproto.server.getSession')).toMatchObject({ status: 200, body: { handle: 'handle.invalid' } })
  await agent.resumeSession(agent.session!)
  expect(await ask('com.atproto.identity.getRecommendedDidCredentials')).toMatchObject({ status: 200 })
  expect(await ask(`com.atproto.identity.resolveIdentity?identifier=${alice.did}`)).toMatchObject({
    status: 200,
    body: { did: alice.did, handle: 'handle.invalid' },
  })
  expect(await ask(`com.atproto.sync.getRepoStatus?did=${alice.did}`)).toMatchObject({ body: { active: true } })
  expect(await ask('com.atproto.server.checkAccountStatus')).toMatchObject({
    body: { activated: true, validDid: true },
  })
  expect(await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email: alice.email } })).toMatchObject({
    status: 200,
  })
  await pds.runSteps()
  expect(pds.mails.at(-1)?.text).toContain(alice.did)
})

test('operators find an account without a handle', async () => {
  for (const path of [
    `/xrpc/com.atproto.admin.getAccountInfo?did=${alice.did}`,
    `/v1/admin/accounts?q=${alice.did}`,
    `/v1/accounts/${alice.did}/usage`,
  ])
    expect({ path, status: (await operate(pds, path)).status }).toEqual({ path, status: 200 })
})

test('it signs in on pages', async () => {
  const form = (fields: Record<string, string>) =>
    fetch(`${pds.url}/account/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    })
  const signedIn = await form({ identifier: alice.email, password: PASSWORD })
  expect(signedIn.status).toBe(303)
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const page = await request(`${pds.url}/account`, { headers: { cookie } })
  expect(page.status).toBe(200)
  expect(page.body).toContain(alice.did)
  expect(page.body).not.toMatch(/\bnull\b|undefined/)
})

test('it can leave, and come back', async () => {
  expect(
    await xrpc(pds, 'com.atproto.server.deactivateAccount', { headers: bearer(agent.session!.accessJwt), json: {} }),
  ).toMatchObject({
    status: 200,
  })
  expect(
    await request(`${pds.url}/xrpc/com.atproto.server.activateAccount`, {
      method: 'POST',
      headers: bearer(agent.session!.accessJwt),
    }),
  ).toMatchObject({ status: 200 })
  await operate(pds, '/xrpc/com.atproto.admin.deleteAccount', { did: alice.did })
  expect((await ask('com.atproto.server.getSession')).status).not.toBe(200)
})
