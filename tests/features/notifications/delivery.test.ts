/** Pushes on their way to devices, through a real relay over QUIC. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { PushDevice } from '../../support/clients/push-device.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import { handlesIn, message, Phone, phoneOf, tell, TOPIC, waitingSteps } from '../../support/clients/phone.ts'
import { startWith } from '../../support/servers/pushing.ts'
import { thrownBy } from '../../support/thrown.ts'

test('a push is sealed, padded and delivered, and the device alone can read it and tell who sent it', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const phone = await phoneOf(pds, 'ann')
  expect(relay.devices).toMatchObject([{ token: phone.token, topic: TOPIC }])
  expect(await tell(pds, phone)).toBe(1)
  await pds.runSteps()
  const [sent] = relay.sent
  expect(sent).toMatchObject({ token: phone.token, topic: TOPIC, ping: false, ttlSecs: 3600, length: 1024 })
  const { pad, ...read } = await phone.read(sent!)
  expect(read).toEqual(message)
  expect(pad).toMatch(/^ +$/)
  expect(await thrownBy(phone.device.open(sent!, new PushDevice().publicKey))).toThrow()
  expect(await thrownBy(new PushDevice().open(sent!, phone.device.publicKey))).toThrow()
  for (const text of [message.title, message.body, 'cla_1', phone.account.did])
    expect(JSON.stringify(relay.requests)).not.toContain(text)
  expect(await waitingSteps(pds, 'push')).toBe(0)
  expect(relay.connections).toBe(1)
  const [{ pushed_at: pushedAt }] = (await pds.rows('push_registration', {}, ['pushed_at'])) as [{ pushed_at: number }]
  expect(Math.abs(pds.clock.now() - pushedAt)).toBeLessThan(60_000)
})

test('the length of a push says which of three sizes it has, and one that has none is dropped whole', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const phone = await phoneOf(pds, 'ann')
  for (const [index, chars] of [0, 1, 300, 540, 600, 1200, 1400, 2300].entries()) {
    await tell(pds, phone, { body: 'x'.repeat(chars) })
    await pds.runSteps()
    expect([1024, 1023, 2048, 2047, 3584, 3583]).toContain(relay.sent[index]!.length)
    pds.clock.advance({ secs: 120 })
  }
  expect(new Set(relay.sent.map(({ length }) => length)).size).toBeLessThanOrEqual(6)
  const before = relay.ofType('push').length
  await tell(pds, phone, { body: 'x'.repeat(5000) })
  await pds.runSteps()
  expect(relay.ofType('push')).toHaveLength(before)
  expect(await waitingSteps(pds, 'push')).toBe(0)
  expect(pds.log.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'push dropped: too large to pad' },
  ])
})

test('all devices of an account are told once, in the order of the events, under one key for each event', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await createAccount(pds, 'ann')
  const phones = Array.from({ length: 4 }, (_, i) => new Phone(pds, ann, `phone ${i}`))
  for (const phone of phones) await phone.register()
  await pds.runSteps()
  expect(await tell(pds, phones[0]!, { title: 'first' })).toBe(4)
  const headers = bearer(ADMIN_TOKEN)
  expect(
    (await request(`${pds.url}/v1/admin/notifications/sender-keys/rotate`, { method: 'POST', headers })).status,
  ).toBe(200)
  expect(await tell(pds, phones[0]!, { title: 'second' })).toBe(4)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(8)
  for (const phone of phones) {
    const own = relay.sent.filter(({ token }) => token === phone.token)
    expect(own.map(({ kid }) => kid)).toEqual([1, 2])
    expect(await Promise.all(own.map(async (sent) => (await phone.read(sent))['title']))).toEqual(['first', 'second'])
  }
  expect(new Set(relay.sent.map(({ enc }) => enc)).size).toBe(8)
})

test('a ping has no content, and no key is made for it', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const phone = await phoneOf(pds, 'ann', { ping: true })
  expect(await tell(pds, phone)).toBe(1)
  await pds.runSteps()
  expect(relay.ofType('push')).toMatchObject([{ kid: 0, enc: '', ct: '', ping: true }])
  expect(relay.sent).toMatchObject([{ ping: true, length: '{"aps":{"content-available":1}}'.length }])
  expect(await pds.rows('push_sender_key', {}, ['kid'])).toEqual([])
})

test('without a master key nothing can be sealed: devices that want content are not counted, the others are pinged', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay, { signingKeyMasterKey: null }, { alone: 'it has no master key' })
  const phone = await phoneOf(pds, 'ann')
  const watch = new Phone(pds, phone.account)
  await watch.register({ ping: true })
  await pds.runSteps()
  expect(await tell(pds, phone)).toBe(1)
  await pds.runSteps()
  expect(relay.sent).toMatchObject([{ token: watch.token, ping: true }])
})

test('a device that has just registered is not missed, whatever the order in which the queues are worked off', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await createAccount(pds, 'ann')
  const phone = new Phone(pds, ann)
  await phone.register()
  expect(await tell(pds, phone)).toBe(1)
  await pds.runSteps()
  expect(relay.sent).toMatchObject([{ token: phone.token }])
  expect(relay.ofType('registerHandle')).toHaveLength(1)
})

test('an account is told of nothing that is about another, and a device that has left of nothing at all', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const [ann, ben] = [await phoneOf(pds, 'ann'), await phoneOf(pds, 'ben')]
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  await tell(pds, ann)
  await tell(pds, ben)
  await tell(pds, ann)
  await ben.leave()
  resolve()
  await pds.runSteps()
  expect(relay.sent.map(({ token }) => token)).toEqual([ann.token, ann.token])
  expect(relay.devices.map(({ token }) => token)).toEqual([ann.token])
})

test('two accounts on one phone have one handle: another one is written to both, and it goes with the last of them', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  const first = relay.handleOf(ann.token)!
  expect(await handlesIn(pds)).toEqual({ [ann.account.did]: first })
  const ben = new Phone(pds, await createAccount(pds, 'ben'), ann.uuid, ann.token)
  await ben.register()
  await pds.runSteps()
  const second = relay.handleOf(ann.token)!
  expect(second).not.toBe(first)
  expect(await handlesIn(pds)).toEqual({ [ann.account.did]: second, [ben.account.did]: second })

  await ben.leave()
  await pds.runSteps()
  expect(relay.handleOf(ann.token)).toBe(second)
  await tell(pds, ann)
  await pds.runSteps()
  expect((await ann.read(relay.sent[0]!))['title']).toBe(message.title)
  await ann.leave()
  await pds.runSteps()
  expect(relay.devices).toEqual([])
  expect(relay.ofType('dropHandle')).toEqual([{ type: 'dropHandle', handle: second }])
})

test('a registration that ended while the relay was asked leaves nothing there', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const phone = new Phone(pds, await createAccount(pds, 'ann'))
  await phone.register()
  await until(() => relay.devices.length > 0)
  expect(await phone.leave()).toMatchObject({ body: { status: 'deleted' } })
  resolve()
  await pds.runSteps()
  expect(relay.devices).toEqual([])
  expect(await handlesIn(pds)).toEqual({})
})

test('a device whose token is dead is forgotten, unless it has registered again meanwhile', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const [ann, ben] = [await phoneOf(pds, 'ann'), await phoneOf(pds, 'ben')]
  relay.lies.push({ type: 'pushed', outcome: 'unregistered' })
  await tell(pds, ann)
  await pds.runSteps()
  expect(Object.keys(await handlesIn(pds))).toEqual([ben.account.did])
  expect(await tell(pds, ann)).toBe(0)

  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  relay.lies.push({ type: 'pushed', outcome: 'unregistered' })
  const before = relay.requests.length
  await tell(pds, ben)
  await until(() => relay.requests.length > before)
  await ben.register()
  resolve()
  await pds.runSteps()
  expect(await handlesIn(pds)).toEqual({ [ben.account.did]: relay.handleOf(ben.token)! })
})

test('a handle that the relay does not know is replaced once in an hour', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const phone = await phoneOf(pds, 'ann')
  const registrations = () => relay.ofType('registerHandle').length
  relay.devices.splice(0)
  await tell(pds, phone)
  await pds.runSteps()
  expect(registrations()).toBe(2)
  expect(await handlesIn(pds)).toEqual({ [phone.account.did]: relay.handleOf(phone.token)! })
  await tell(pds, phone)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(1)

  relay.devices.splice(0)
  for (let i = 0; i < 3; i++) {
    await tell(pds, phone)
    await pds.runSteps()
  }
  expect(registrations()).toBe(2)
  pds.clock.advance({ secs: 3601 })
  await tell(pds, phone)
  await pds.runSteps()
  expect(registrations()).toBe(3)
  await tell(pds, phone)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(2)
})

test('a relay that gives one handle to two devices misleads none of them, and takes it from neither', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  const handle = relay.handleOf(ann.token)!
  relay.lies.push({ type: 'handle', handle })
  const ben = await phoneOf(pds, 'ben')
  await tell(pds, ben)
  await pds.runSteps()
  // It comes to the wrong device, which cannot read it.
  expect(relay.sent).toMatchObject([{ token: ann.token }])
  expect(await thrownBy(ann.read(relay.sent[0]!))).toThrow()
  expect((await ben.read(relay.sent[0]!))['title']).toBe(message.title)

  relay.lies.push({ type: 'pushed', outcome: 'unknownHandle' })
  await tell(pds, ann)
  await pds.runSteps()
  expect(await handlesIn(pds)).toEqual({ [ann.account.did]: relay.handleOf(ann.token)!, [ben.account.did]: handle })
  await tell(pds, ben)
  await pds.runSteps()
  expect((await handlesIn(pds))[ben.account.did]).toBe(relay.handleOf(ben.token)!)
  await ben.leave()
  await pds.runSteps()
  await tell(pds, ann)
  await pds.runSteps()
  expect(relay.sent.at(-1)).toMatchObject({ token: ann.token })
})

test.each(['throttled', 'tooLarge', 'apnsError'])(
  'a push that the relay answers with %s is not sent again',
  async (outcome) => {
    await using relay = await PushRelay.start({ codes: null })
    await using pds = await startWith(relay)
    const phone = await phoneOf(pds, 'ann')
    relay.lies.push({ type: 'pushed', outcome })
    await tell(pds, phone)
    await pds.runSteps()
    pds.clock.advance({ secs: 600 })
    await pds.runSteps()
    expect(relay.ofType('push')).toHaveLength(1)
    expect(await waitingSteps(pds, 'push')).toBe(0)
    expect(pds.log.filter((line) => line.message === 'push not delivered')).toMatchObject([
      { did: phone.account.did, outcome },
    ])
    const { body: metrics } = await request(`${pds.url}/metrics`, { headers: bearer(ADMIN_TOKEN) })
    expect(metrics).toContain(`notify_pushes_total{outcome="${outcome}"} 1`)
  },
)
