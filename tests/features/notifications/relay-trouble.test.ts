/** A relay that is away, slow, strict or strange. Nothing that a person waits for notices. */
import { expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { enqueuePush } from '../../../src/features/push/notifications/notifications.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { PushRelay, type Json } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import { handlesIn, message, Phone, phoneOf, tell, waitingSteps } from '../../support/clients/phone.ts'
import { startStranger, startWith } from '../../support/servers/pushing.ts'
import { atOneNode } from '../../support/turns.ts'

const metricsOf = async (pds: TestPds) =>
  String((await request(`${pds.url}/metrics`, { headers: bearer(ADMIN_TOKEN) })).body)
const titles = (phone: Phone, relay: PushRelay) =>
  Promise.all(
    relay.sent.filter(({ token }) => token === phone.token).map(async (sent) => (await phone.read(sent))['title']),
  )

test('while the relay is away devices register and events are queued; it comes back elsewhere and gets them in order', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  await relay.disappear()
  for (const title of ['first', 'second', 'third']) expect(await tell(pds, ann, { title })).toBe(1)
  const ben = new Phone(pds, await createAccount(pds, 'ben'))
  expect(await ben.register()).toMatchObject({ status: 200, body: { status: 'pending' } })
  expect(await waitingSteps(pds, 'push')).toBe(3)
  expect(await waitingSteps(pds, 'push-handle')).toBe(1)
  await relay.comeBack()
  // Whoever dials at the moment finds the relay at its new address.
  await pds.runSteps()
  pds.clock.advance({ secs: 6 })
  await pds.runSteps()
  expect(await titles(ann, relay)).toEqual(['first', 'second', 'third'])
  expect((await handlesIn(pds))[ben.account.did]).toBe(relay.handleOf(ben.token)!)
})

test('a relay that was restarted between two pushes gets both', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  await tell(pds, ann, { title: 'before' })
  await pds.runSteps()
  await relay.disappear()
  await relay.comeBack()
  await tell(pds, ann, { title: 'after' })
  await pds.runSteps()
  expect(await titles(ann, relay)).toEqual(['before', 'after'])
})

test('requests are answered and other steps are performed while the relay takes its time', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const before = relay.requests.length
  await tell(pds, ann)
  await until(() => relay.requests.length > before)
  const ben = new Phone(pds, await createAccount(pds, 'ben'))
  for (const phone of [ann, ben]) expect((await phone.register()).status).toBe(200)
  expect(await tell(pds, ann, { title: 'second' })).toBe(1)
  const headers = bearer(ann.account.accessJwt)
  expect((await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers })).status).toBe(200)
  expect(await metricsOf(pds)).toContain('notify_queue_depth 4')
  const mails = pds.mails.length
  const { email } = ann.account as TestAccount
  expect((await request(`${pds.url}/xrpc/com.atproto.server.requestPasswordReset`, { json: { email } })).status).toBe(
    200,
  )
  await until(() => pds.mails.length > mails)
  resolve()
  await pds.runSteps()
  expect(await metricsOf(pds)).toContain('notify_queue_depth 0')
  expect(relay.sent).toHaveLength(2)
})

test('a server stops at once although the relay takes its time, and goes on after its start', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  relay.held = new Promise(() => {})
  await tell(pds, ann, { title: 'first' })
  await until(() => relay.sent.length > 0)
  await tell(pds, ann, { title: 'second' })
  await pds.stop()
  relay.held = null
  await pds.restart()
  await pds.runSteps()
  // The relay had the first, but this server does not know.
  expect(await titles(ann, relay)).toEqual(['first', 'first', 'second'])
})

test('a push that is too old is not sent, and neither does it hold up the next', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const before = relay.requests.length
  await tell(pds, ann, { title: 'under way' })
  await until(() => relay.requests.length > before)
  await tell(pds, ann, { title: 'old' }, 60)
  await tell(pds, ann, { title: 'in time' }, 120)
  pds.clock.advance({ secs: 60 })
  resolve()
  await pds.runSteps()
  expect(await titles(ann, relay)).toEqual(['under way', 'in time'])
  expect(relay.sent[1]!.ttlSecs).toBeWithin(50, 61)
  expect(await metricsOf(pds)).toContain('notify_pushes_total{outcome="expired"} 1')
})

const codes = { enrollmentCode: new Secret('a code of the relay') }

test('the server enrolls when the relay says so, once, and repeats what it had asked', async () => {
  await using relay = await PushRelay.start({ codes: ['a code of the relay'] })
  await using pds = await startStranger(relay, { notifications: { ...relay.config.notifications, ...codes } })
  using _ = atOneNode(pds, 'each node counts for itself')
  const ann = await phoneOf(pds, 'ann')
  const typesOf = (requests: readonly Json[]) => requests.map(({ type }) => type)
  expect(typesOf(relay.requests)).toEqual(['registerHandle', 'enroll', 'registerHandle'])
  expect(relay.ofType('enroll')).toEqual([{ type: 'enroll', claimCode: 'a code of the relay' }])
  await tell(pds, ann)
  await pds.runSteps()
  expect(typesOf(relay.requests.splice(0))).toEqual(['registerHandle', 'enroll', 'registerHandle', 'push'])

  // An answer to a push says it inside. The code is spent, which does no harm to who has enrolled.
  relay.lies.push({ type: 'pushed', outcome: 'notEnrolled' })
  await tell(pds, ann)
  await pds.runSteps()
  expect(typesOf(relay.requests.splice(0))).toEqual(['push', 'enroll', 'push'])
  relay.lies.push({ type: 'notEnrolled' })
  await tell(pds, ann)
  await pds.runSteps()
  expect(typesOf(relay.requests.splice(0))).toEqual(['push', 'enroll', 'push'])
  // It says so again and again.
  relay.lies.push(
    { type: 'pushed', outcome: 'notEnrolled' },
    { type: 'ok' },
    { type: 'pushed', outcome: 'notEnrolled' },
  )
  await tell(pds, ann)
  await pds.runSteps()
  expect(typesOf(relay.requests)).toEqual(['push', 'enroll', 'push'])
  expect(relay.sent).toHaveLength(3)
  expect(await metricsOf(pds)).toContain('notify_pushes_total{outcome="notEnrolled"} 1')
})

test('a relay that refuses to enroll is left alone for an hour, and the operator reads why once', async () => {
  await using relay = await PushRelay.start({ codes: ['another code'] })
  await using pds = await startStranger(relay, { notifications: { ...relay.config.notifications, ...codes } })
  const ann = await phoneOf(pds, 'ann')
  const lines = () => pds.log.filter(({ message }) => message.includes('notifications.enrollment_code'))
  expect(lines()).toMatchObject([{ level: 'error' }])
  expect(JSON.stringify(pds.log)).not.toContain('a code of the relay')
  const ben = new Phone(pds, await createAccount(pds, 'ben'))
  await ben.register()
  await tell(pds, ann)
  pds.clock.advance({ secs: 3000 })
  await pds.runSteps()
  expect(relay.requests).toHaveLength(2)
  expect(lines()).toHaveLength(1)
  pds.clock.advance({ secs: 700 })
  await pds.runSteps()
  expect(relay.ofType('enroll')).toHaveLength(2)
  expect(lines()).toHaveLength(2)

  // A restart asks at once, and what had waited goes on.
  await pds.restart({ notifications: { ...relay.config.notifications, enrollmentCode: new Secret('another code') } })
  await pds.runSteps()
  expect(Object.values(await handlesIn(pds)).toSorted()).toEqual(relay.devices.map(({ handle }) => handle).toSorted())
})

const garbage = [
  new TextEncoder().encode('a secret'),
  new Uint8Array(0),
  new Uint8Array(60_000),
  { type: 'a secret' },
  { type: 'handle', handle: 'a secret' },
]

test('a push that is answered with garbage is not sent again, and no word of the answer is logged', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  for (const answer of [...garbage, { type: 'ok' }]) {
    relay.lies.push(answer)
    await tell(pds, ann)
    await pds.runSteps()
  }
  expect(relay.ofType('push')).toHaveLength(garbage.length + 1)
  expect(await waitingSteps(pds, 'push')).toBe(0)
  expect(await metricsOf(pds)).toContain(`notify_pushes_total{outcome="malformed"} ${garbage.length + 1}`)
  expect(pds.log.filter(({ level }) => level === 'error')).toHaveLength(garbage.length)
  expect(JSON.stringify(pds.log)).not.toContain('a secret')
})

test('a registration that the relay refuses or does not understand is left to the operator, and holds up no other', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  relay.takesTopic = (topic) => topic !== 'org.example.other'
  const [ann, ben, carl] = await Promise.all(
    ['ann', 'ben', 'carl'].map(async (name) => new Phone(pds, await createAccount(pds, name))),
  )
  await ann!.register({ apnsTopic: 'org.example.other' })
  await pds.runSteps()
  relay.lies.push(garbage[0]!)
  await ben!.register()
  await pds.runSteps()
  await carl!.register()
  await pds.runSteps()
  const handles = await handlesIn(pds)
  expect([ann, ben, carl].map((phone) => handles[phone!.account.did])).toEqual([
    null,
    null,
    relay.handleOf(carl!.token)!,
  ])
  const kinds = await pds.ctx.steps.summaries()
  expect(kinds.find(({ kind }) => kind === 'push-handle')).toMatchObject({ waiting: 0, failed: 2 })

  const headers = bearer(ADMIN_TOKEN)
  await request(`${pds.url}/v1/admin/steps/retry`, { json: { kind: 'push-handle' }, headers })
  await pds.runSteps()
  expect((await handlesIn(pds))[ben!.account.did]).toBe(relay.handleOf(ben!.token)!)
})

test('a registration that the relay never answers holds up no other', async () => {
  let isLost = true
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const [ann, ben] = [new Phone(pds, await createAccount(pds, 'ann')), new Phone(pds, await createAccount(pds, 'ben'))]
  relay.swallows = ({ apnsToken }) => isLost && apnsToken === ann.token
  await ann.register()
  await ben.register()
  await pds.runSteps()
  expect(await handlesIn(pds)).toEqual({ [ann.account.did]: null, [ben.account.did]: relay.handleOf(ben.token)! })
  expect(relay.requests.filter(({ apnsToken }) => apnsToken === ann.token)).toHaveLength(2)
  isLost = false
  pds.clock.advance({ secs: 61 })
  await pds.runSteps()
  expect((await handlesIn(pds))[ann.account.did]).toBe(relay.handleOf(ann.token)!)
})

test('a push to a device that the relay does not register holds up no other', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ben = await phoneOf(pds, 'ben')
  const phone = async (name: string) => new Phone(pds, await createAccount(pds, name))
  const [silent, refused, throttled] = [await phone('silent'), await phone('refused'), await phone('throttled')]
  relay.swallows = ({ apnsToken }) => apnsToken === silent.token
  relay.takesTopic = (topic) => topic !== 'org.example.other'
  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const before = relay.requests.length
  await tell(pds, ben)
  await until(() => relay.requests.length > before)
  // Their pushes come before their registrations are tried.
  await silent.register()
  await refused.register({ apnsTopic: 'org.example.other' })
  for (const each of [silent, refused, ben]) expect(await tell(pds, each)).toBe(1)
  resolve()
  await pds.runSteps()
  expect(relay.sent.map(({ token }) => token)).toEqual([ben.token, ben.token])

  relay.lies.push({ type: 'throttled' })
  await throttled.register()
  for (const each of [throttled, ben]) expect(await tell(pds, each)).toBe(1)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(3)
})

test('pushes keep to the budget of the relay, and none is lost to it', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const phones = await Promise.all(
    Array.from({ length: 6 }, async (_, i) => new Phone(pds, await createAccount(pds, `person${i}`))),
  )
  for (const phone of phones) await phone.register()
  await pds.runSteps()
  relay.clock = pds.clock
  for (let i = 0; i < 9; i++) for (const phone of phones) await tell(pds, phone)
  await pds.runSteps()
  expect(relay.sent.length).toBeWithin(50, 52)
  while (relay.sent.length < 54) {
    const before = relay.sent.length
    pds.clock.advance({ secs: 4 })
    await pds.runSteps()
    expect(relay.sent.length).toBeWithin(before + 1, before + 3)
  }
  expect(await waitingSteps(pds, 'push')).toBe(0)
  expect(await metricsOf(pds)).toContain('notify_pushes_total{outcome="throttled"} 0')
})

test('one device that is told too much holds up no other, and the relay is not asked', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const [ann, ben] = [await phoneOf(pds, 'ann'), await phoneOf(pds, 'ben')]
  relay.clock = pds.clock
  for (let i = 0; i < 12; i++) await tell(pds, ann)
  await tell(pds, ben)
  await pds.runSteps()
  const sentTo = (phone: Phone) => relay.sent.filter(({ token }) => token === phone.token).length
  expect([sentTo(ann), sentTo(ben)]).toEqual([10, 1])
  expect(relay.ofType('push')).toHaveLength(11)
})

test('devices register at the pace of the relay, and pushes do not wait for them', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const ann = await phoneOf(pds, 'ann')
  relay.clock = pds.clock
  const ben = await createAccount(pds, 'ben')
  for (let i = 0; i < 12; i++) await new Phone(pds, ben).register()
  await tell(pds, ann)
  await pds.runSteps()
  expect(relay.sent).toHaveLength(1)
  const known = relay.devices.length
  expect(known).toBeWithin(10, 12)
  for (let count = known; count < 13; count++) {
    pds.clock.advance({ secs: 37 })
    await pds.runSteps()
    expect(relay.devices).toHaveLength(count + 1)
  }
  // The relay has a smaller budget than the server thinks.
  relay.lies.push({ type: 'throttled' })
  pds.clock.advance({ secs: 3600 })
  const late = new Phone(pds, ben)
  await late.register()
  await pds.runSteps()
  expect(relay.handleOf(late.token)).toBeUndefined()
  pds.clock.advance({ secs: 37 })
  await pds.runSteps()
  expect(relay.handleOf(late.token)).toBeDefined()
  expect(pds.log.filter(({ message }) => message.startsWith('step failed'))).toEqual([])
})

test('accounts take turns to register devices and to be told of events', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  const [ann, ben] = [await phoneOf(pds, 'ann'), await phoneOf(pds, 'ben')]
  const [cat, dan] = [await createAccount(pds, 'cat'), await createAccount(pds, 'dan')]
  relay.clock = pds.clock
  await relay.disappear()
  for (let i = 0; i < 15; i++) await new Phone(pds, cat).register()
  const late = new Phone(pds, dan)
  await late.register()
  for (const title of ['one', 'two', 'three']) await tell(pds, ann, { title })
  for (const title of ['four', 'five']) await tell(pds, ben, { title })
  await relay.comeBack()
  await pds.runSteps()
  pds.clock.advance({ secs: 6 })
  await pds.runSteps()
  expect(relay.handleOf(late.token)).toBeDefined()
  expect(relay.sent.map(({ token }) => token)).toEqual([ann, ann, ben, ann, ben].map(({ token }) => token))
  expect([await titles(ann, relay), await titles(ben, relay)]).toEqual([
    ['one', 'two', 'three'],
    ['four', 'five'],
  ])
})

test('a queue that nobody works off is bounded: the oldest pushes of the account that has most make room', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay, {}, { alone: 'its steps are stopped' })
  const ann = await createAccount(pds, 'ann')
  const { ctx } = pds
  await pds.ctx.steps.stop()
  await pds.plant('push_registration', {
    owner: ann.did,
    device_id: 'phone',
    public_key: 'did:key:z',
    token: 'ab',
    topic: 'org.example',
    is_ping: 1,
    handle: 'handle',
    registered_at: 0,
  })
  const enqueue = (times: number) =>
    ctx.db.transaction(async (tx) => {
      for (let i = 0; i < times; i++) await enqueuePush(ctx, tx, ann.did as Did, message)
    })
  await enqueue(1)
  const [first] = await pds.rows('step', { kind: 'push' })
  const ofOther = { ...first!, id: '00000000-0000-7000-8000-000000000000', key: 'other', share: 'other' }
  await pds.plant('step', ofOther)
  const later = Array.from({ length: 7949 }, () => Bun.randomUUIDv7())
  await pds.plant(
    'step',
    later.map((id) => ({ ...first!, id, key: id })),
  )
  await enqueue(100)
  expect(await waitingSteps(pds, 'push')).toBe(8000)
  const left = new Set((await pds.rows('step', { kind: 'push' })).map(({ id }) => id))
  expect([left.has(first!.id), later.findIndex((id) => left.has(id)), left.has(ofOther.id)]).toEqual([false, 50, true])
})
