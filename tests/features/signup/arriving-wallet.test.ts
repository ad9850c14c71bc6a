/** A wallet moves its account in: without a password, and with an identity that only the wallet changes. */
import { expect, test } from 'bun:test'
import { holder, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { reserveKey } from '../../support/clients/brought.ts'
import { bearer } from '../../support/clients/http.ts'
import { MASTER_KEY } from '../../support/servers/pds.ts'
import { stranger, type Stranger } from '../../support/clients/stranger.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { askSession, sessionRequest } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { signingKeyMasterKey: MASTER_KEY, rateLimit: { enabled: false } } })

const arrive = (
  mover: Stranger,
  name: string,
  changes: object = {},
  headers: Record<string, string> = bearer(mover.token()),
) =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: { did: mover.did, handle: `${name}.test`, email: `${name}@example.com`, ...changes },
    headers,
  })

/** What the wallet signs: its own key above that of the account here. */
async function publishHere(mover: Stranger, account: TestAccount): Promise<void> {
  const { body } = await account.call('com.atproto.identity.getRecommendedDidCredentials')
  expect(Object.keys(body.services)).toEqual(['atproto_pds'])
  expect(Object.keys(body.verificationMethods)).toEqual(['atproto'])
  await mover.publish({ ...body, rotationKeys: [mover.didKey, body.verificationMethods.atproto] })
}

test.each(['p256', 'k256'] as const)(
  'with a %s key it arrives quietly, activates, and signs in with its key',
  async (curve) => {
    const mover = await stranger(pds, curve)
    const reserved = await reserveKey(pds, mover.did)
    expect(await reserveKey(pds, mover.did)).toBe(reserved)
    const events = new Subscriber(pds.url)
    await events.opened
    const { status, body } = await arrive(mover, `mover-${curve}`)
    expect(status).toBe(200)
    expect(body.didDoc.id).toBe(mover.did)
    const account = holder(pds, { ...body, email: '', password: '' })
    const state = async () => (await account.call('com.atproto.server.checkAccountStatus')).body
    expect(await state()).toMatchObject({ activated: false, validDid: false })
    expect((await account.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(400)
    const device = { key: mover.key, did: mover.didKey }
    expect((await askSession(pds, sessionRequest(pds, { did: mover.did, device }))).status).toBe(401)

    await publishHere(mover, account)
    expect(await state()).toMatchObject({ activated: false, validDid: true })
    expect(events.messages).toEqual([])
    expect((await account.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
    const types = (await events.until(3)).map(({ type }) => type)
    expect(types.toSorted()).toEqual(['#account', '#identity', '#sync'])
    events.close()
    const session = await askSession(pds, sessionRequest(pds, { did: mover.did, device }))
    expect(session).toMatchObject({ status: 200, body: { did: mover.did } })
    const own = holder(pds, { ...session.body, email: '', password: '' })
    const credentials = (await own.call('com.atproto.identity.getRecommendedDidCredentials')).body
    expect(credentials).toMatchObject({ rotationKeys: [reserved], verificationMethods: { atproto: reserved } })
  },
)

test('an interrupted move goes on with the same proof and names, and not with others, nor once the account was active', async () => {
  const mover = await stranger(pds, 'k256')
  expect((await arrive(mover, 'slow')).status).toBe(200)
  expect(await arrive(mover, 'slow', { email: 'other@example.com' })).toMatchObject({ status: 400 })
  expect(await arrive(mover, 'otto')).toMatchObject({ status: 400 })
  const other = await stranger(pds, 'k256')
  // The handle is taken for everybody else.
  for (const headers of [bearer(other.token()), {}]) expect((await arrive(mover, 'slow', {}, headers)).status).toBe(400)
  for (const headers of [bearer(other.token()), {}])
    expect((await arrive(mover, 'slower', { email: 'slower@example.com' }, headers)).status).toBe(401)
  const again = await arrive(mover, 'slow')
  expect(again).toMatchObject({ status: 200, body: { did: mover.did, handle: 'slow.test' } })
  const account = holder(pds, { ...again.body, email: '', password: '' })
  await publishHere(mover, account)
  await account.call('com.atproto.server.activateAccount', { method: 'POST' })
  await account.call('com.atproto.server.deactivateAccount', { json: {} })
  expect((await arrive(mover, 'slow')).body.error).not.toBeUndefined()
})

test.each([{}, { password: 'a password of the owner' }])(
  'an interrupted move that goes on with %p leaves no password of who began it',
  async (changes) => {
    const mover = await stranger(pds, 'k256')
    const name = `begun${Object.keys(changes).length}`
    const password = 'a password of a thief'
    const begun = holder(pds, { ...(await arrive(mover, name, { password })).body, email: '', password })
    const made = await begun.call('com.atproto.server.createAppPassword', { json: { name: 'kept' } })
    expect(made.status).toBe(200)
    expect((await arrive(mover, name, changes)).status).toBe(200)
    const signIn = async (tried: string) =>
      (await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: mover.did, password: tried } })).status
    expect([await signIn(password), await signIn(made.body.password)]).toEqual([401, 401])
    if (changes.password !== undefined) expect(await signIn(changes.password)).toBe(200)
  },
)

test('it needs an address and a free handle, and none that is reserved for the service', async () => {
  const mover = await stranger(pds, 'p256')
  expect((await arrive(mover, 'nobody', { email: undefined })).status).toBe(400)
  expect((await arrive(mover, 'postmaster')).status).toBe(400)
  expect((await arrive(mover, 'slow')).status).toBe(400)
  expect((await arrive(mover, 'fresh', { email: 'slow@example.com' })).status).toBe(400)
  expect((await arrive(mover, 'fresh')).status).toBe(200)
})
