import { AtpAgent } from '@atproto/api'
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))

let names = 0
const create = async (input: object = {}) =>
  (await alice.call('com.atproto.server.createAppPassword', { json: { name: `app ${++names}`, ...input } })).body
const claims = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())

test('an app password is shown once, opens limited sessions, and is listed newest first', async () => {
  const first = await create()
  expect(first).toMatchObject({ privileged: false, personalDetails: false })
  expect(first.password).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
  pds.clock.advance({ secs: 1 })
  const second = await create({ privileged: true, personalDetails: true })
  const { body } = await alice.call('com.atproto.server.listAppPasswords')
  expect(body.passwords.slice(0, 2)).toEqual([
    { name: second.name, createdAt: second.createdAt, privileged: true, personalDetails: true },
    { name: first.name, createdAt: first.createdAt, privileged: false, personalDetails: false },
  ])

  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: 'alice.test', password: first.password })
  expect(claims(agent.session!.accessJwt)).toMatchObject({ scope: 'com.atproto.appPass' })
  const privileged = await logIn(pds, alice, second.password)
  expect(claims(privileged.accessJwt)).toMatchObject({ scope: 'com.atproto.appPassPrivileged', personal_details: true })
})

test('grants outlive a refresh', async () => {
  const made = await create({ privileged: true, personalDetails: true })
  const { refreshJwt } = await logIn(pds, alice, made.password)
  const { body } = await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(refreshJwt) })
  expect(claims(body.accessJwt)).toMatchObject({ scope: 'com.atproto.appPassPrivileged', personal_details: true })
})

test('a revoked app password opens nothing, and its sessions end, and no others', async () => {
  const made = await create()
  const session = await logIn(pds, alice, made.password)
  const other = await logIn(pds, alice, PASSWORD)
  expect((await alice.call('com.atproto.server.revokeAppPassword', { json: { name: made.name } })).status).toBe(200)
  expect((await alice.call('com.atproto.server.revokeAppPassword', { json: { name: made.name } })).status).toBe(200)
  const refresh = (token: string) =>
    xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(token) })
  expect(await refresh(session.refreshJwt)).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token has been revoked' },
  })
  expect((await refresh(other.refreshJwt)).status).toBe(200)
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: 'alice.test', password: made.password },
    }),
  ).toMatchObject({ status: 401 })
})

test('an app password works for its own account only', async () => {
  const bob = await createAccount(pds, 'bob')
  const made = await create()
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: bob.handle, password: made.password } }),
  ).toMatchObject({
    status: 401,
  })
})

test('names are unique, and neither blank nor long', async () => {
  const { name } = await create()
  for (const bad of [name, ' ', 'x'.repeat(256)]) {
    expect(await alice.call('com.atproto.server.createAppPassword', { json: { name: bad } })).toMatchObject({
      status: 400,
      body: { error: 'InvalidRequest' },
    })
  }
})

test('an app password makes, lists and revokes no app passwords', async () => {
  const session = await logIn(pds, alice, (await create({ privileged: true })).password)
  const badScope = { status: 400, body: { error: 'InvalidToken', message: 'Bad token scope' } }
  expect(await session.call('com.atproto.server.createAppPassword', { json: { name: 'x' } })).toMatchObject(badScope)
  expect(await session.call('com.atproto.server.listAppPasswords')).toMatchObject(badScope)
  expect(await session.call('com.atproto.server.revokeAppPassword', { json: { name: 'x' } })).toMatchObject(badScope)
})
