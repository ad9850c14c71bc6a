/** What operators see of the relay and the queue, and how they try it out. */
import { expect, test } from 'bun:test'
import { checks, examine } from '../../../src/features/operations/doctor/doctor.ts'
import { peersOf } from '../../../src/features/push/iroh/iroh.ts'
import { Secret } from '../../../src/base/secret.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import { Phone, phoneOf, tell, waitingSteps } from '../../support/clients/phone.ts'
import { startStranger, startWith } from '../../support/servers/pushing.ts'
import { atOneNode } from '../../support/turns.ts'

const headers = bearer(ADMIN_TOKEN)
const healthOf = async (pds: TestPds) => (await request(`${pds.url}/v1/admin/health`, { headers })).body
const metricsOf = async (pds: TestPds) => String((await request(`${pds.url}/metrics`, { headers })).body)
const doctorOn = ({ ctx, clock }: TestPds) =>
  examine(
    checks.find(({ name }) => name === 'pushes')!,
    { ...ctx, now: () => clock.now() },
  )
const pushTest = (pds: TestPds, ...words: string[]) =>
  runProgram(['push', 'test', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })

test('without a relay there is no queue, which differs from an empty one', async () => {
  await using pds = await startPds()
  expect(await healthOf(pds)).toMatchObject({ notifications: null, notifyQueueDepth: null })
  expect(await metricsOf(pds)).not.toMatch(/^notify_queue_(?:depth|oldest_age_seconds) /m)
  expect(await doctorOn(pds)).toEqual({ state: 'ok', text: 'no push relay is configured' })
  const { did } = await createAccount(pds, 'ann')
  expect(await request(`${pds.url}/v1/admin/notifications/test`, { json: { did }, headers })).toMatchObject({
    status: 501,
    body: { error: { code: 'MethodNotImplemented' } },
  })
})

test('the state of relay and queue is in the health endpointStatus, the metrics and the diagnosis', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using pds = await startWith(relay)
  using _ = atOneNode(pds, 'each node counts for itself')
  expect(await healthOf(pds)).toMatchObject({
    notifications: {
      relay: relay.nodeId,
      connected: false,
      lastAnswerAt: null,
      failingSince: null,
      queue: { depth: 0, oldestAgeSeconds: null },
    },
    notifyQueueDepth: 0,
  })
  expect(await doctorOn(pds)).toMatchObject({ state: 'ok', text: expect.stringContaining('has not been contacted') })
  const ann = await phoneOf(pds, 'ann')
  expect(await healthOf(pds)).toMatchObject({ notifications: { connected: true, lastAnswerAt: expect.any(String) } })
  expect(await doctorOn(pds)).toMatchObject({ state: 'ok', text: 'the push relay responds; its queue is empty' })

  const { promise, resolve } = Promise.withResolvers<void>()
  relay.held = promise
  const before = relay.requests.length
  for (let i = 0; i < 3; i++) await tell(pds, ann)
  await until(() => relay.requests.length > before)
  pds.clock.advance({ secs: 60 })
  expect(await healthOf(pds)).toMatchObject({
    notifications: { queue: { depth: 3, oldestAgeSeconds: 60 } },
    notifyQueueDepth: 3,
  })
  const metrics = await metricsOf(pds)
  for (const line of [
    'notify_queue_depth 3',
    'notify_queue_oldest_age_seconds 60',
    'notify_pushes_total{outcome="delivered"} 0',
  ])
    expect(metrics).toContain(line)
  resolve()
  await pds.runSteps()
  expect(await metricsOf(pds)).toContain('notify_pushes_total{outcome="delivered"} 3')
})

test('a relay that refuses this server is a finding', async () => {
  await using relay = await PushRelay.start({ codes: ['a code'] })
  await using pds = await startStranger(relay)
  using _ = atOneNode(pds, 'each node counts for itself')
  await phoneOf(pds, 'ann')
  expect(await healthOf(pds)).toMatchObject({
    notifications: { failingSince: expect.any(String), lastError: expect.stringContaining('refused to enroll') },
  })
  expect(await doctorOn(pds)).toMatchObject({
    state: 'warning',
    text: expect.stringMatching(/refused to enroll.*1 pushes or registrations are queued/),
    remedy: expect.stringContaining('holdfast push test'),
  })
})

test('a push is tried with every device, step by step', async () => {
  await using relay = await PushRelay.start({ codes: ['a code'] })
  await using pds = await startStranger(relay, {
    notifications: { ...relay.config.notifications, enrollmentCode: new Secret('a wrong code') },
  })
  using _ = atOneNode(pds, 'each node counts for itself')
  const ann = await createAccount(pds, 'ann')
  expect(await pushTest(pds, 'ann')).toMatchObject({
    code: 1,
    out: expect.stringContaining(`No device of ann.test (${ann.did}) has registered.`),
  })
  const [phone, watch] = [new Phone(pds, ann, 'phone'), new Phone(pds, ann, 'watch')]
  await phone.register()
  await watch.register({ ping: true })
  await pds.runSteps()

  // It is tried although the relay is to be left alone for an hour.
  const refused = await pushTest(pds, 'ann')
  expect(refused.code).toBe(1)
  expect(refused.out).toMatch(/^phone +enroll +denied$/m)
  expect(refused.out).toMatch(/^watch +outcome +the push relay has refused to enroll this server$/m)
  expect(refused.out + refused.err).not.toContain('a wrong code')
  relay.enrolled.add(peersOf(pds.ctx)!.nodeId)
  const { code, out } = await pushTest(pds, ann.did)
  expect({ code, out }).toEqual({ code: 0, out: expect.any(String) })
  expect(out.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
    `endpoint | ${peersOf(pds.ctx)!.nodeId}`,
    `relay | ${relay.nodeId}`,
    '',
    'DEVICE | STEP | RESULT',
    'phone | dial | connected before',
    'phone | register | the relay knows the device now',
    'phone | sealed | 1024 bytes for Apple, with key 1',
    'phone | outcome | delivered',
    'watch | dial | connected before',
    'watch | register | the relay knows the device now',
    'watch | sealed | a ping, without content',
    'watch | outcome | delivered',
    '',
  ])
  // What had waited for the relay goes on.
  await pds.runSteps()
  expect(await waitingSteps(pds, 'push-handle')).toBe(0)
  expect(await phone.read(relay.sent[0]!)).toMatchObject({ type: 'test', title: expect.stringContaining('localhost') })
  expect(relay.sent[1]).toMatchObject({ token: watch.token, ping: true })

  relay.lies.push({ type: 'pushed', outcome: 'unregistered' })
  const { devices } = JSON.parse((await pushTest(pds, 'ann', '--json')).out)
  expect(devices).toMatchObject([
    { deviceId: 'phone', outcome: 'unregistered' },
    { deviceId: 'watch', outcome: 'delivered' },
  ])
  expect(pds.log.filter(({ action }) => action === 'push_tested')).toHaveLength(4)
  expect(await pushTest(pds, 'nobody')).toMatchObject({ code: 1 })
})
