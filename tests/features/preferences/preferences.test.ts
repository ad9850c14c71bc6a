import { AtpAgent } from '@atproto/api'
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, logIn, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let app: TestAccount
let granted: TestAccount
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  const logInWith = async (input: object) =>
    logIn(
      pds,
      alice,
      (await alice.call('com.atproto.server.createAppPassword', { json: { name: crypto.randomUUID(), ...input } })).body
        .password,
    )
  app = await logInWith({ privileged: true })
  granted = await logInWith({ personalDetails: true })
})

const born = { $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '1990-01-01T00:00:00.000Z' }
const adult = { $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }
const age = { $type: 'app.bsky.actor.defs#declaredAgePref', isOverAge13: true, isOverAge16: true, isOverAge18: true }
const get = async (who: TestAccount) => (await who.call('app.bsky.actor.getPreferences')).body.preferences
const put = (who: TestAccount, preferences: unknown[]) =>
  who.call('app.bsky.actor.putPreferences', { json: { preferences } })

test('a real client sets and reads preferences', async () => {
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: alice.handle, password: alice.password })
  await agent.setAdultContentEnabled(true)
  await agent.setPersonalDetails({ birthDate: born.birthDate })
  const { birthDate, moderationPrefs } = await agent.getPreferences()
  expect(birthDate?.toISOString()).toBe(born.birthDate)
  expect(moderationPrefs.adultContentEnabled).toBe(true)
})

test('the birth date is seen and set by the account and by app passwords with the grant, and survives the others', async () => {
  expect((await put(alice, [adult, born])).status).toBe(200)
  expect(await get(alice)).toEqual([adult, born, age])
  expect(await get(granted)).toEqual([adult, born, age])
  expect(await get(app)).toEqual([adult, age])
  expect(await put(app, [born])).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect((await put(app, [])).status).toBe(200)
  expect(await get(granted)).toEqual([born, age])
  expect((await put(granted, [adult])).status).toBe(200)
  expect(await get(alice)).toEqual([adult])
})

test('an unknown type of the namespace is kept as it came, one of another is refused with all the rest', async () => {
  const later = { $type: 'app.bsky.actor.defs#inventedLaterPref', nested: { list: [1, 'two', null] } }
  expect((await put(alice, [later])).status).toBe(200)
  expect(await get(alice)).toEqual([later])
  expect(await put(alice, [adult, { $type: 'com.example.pref' }])).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'Some preferences are not in the app.bsky namespace' },
  })
  expect(await get(alice)).toEqual([later])
})

test('preferences belong to their account', async () => {
  const bob = await createAccount(pds, 'bob')
  expect(await get(bob)).toEqual([])
  expect(await xrpc(pds, 'app.bsky.actor.getPreferences')).toMatchObject({ status: 401 })
})
