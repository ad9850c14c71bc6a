/**
 * Pushes that are under way when the machine is lost and another one takes over: each event is told, the one under way
 * at most once more, in order, and none that was told and noted before; also if the first machine lives on. The relay
 * knows the second machine, and each device, without being asked again.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { Phone } from '../../support/clients/phone.ts'
import { freePort } from '../../support/ports.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import { Machine } from './machines.ts'

const MAX_MILLIS = 60_000
const EMAIL = 'person@example.com'

test.each(['kill', 'freeze', 'cut off'] as const)(
  'over a takeover (%s), a push under way is sent once more at most, and one that was sent is not sent again',
  async (fault) => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-takeover-push-'))
    await using bucket = await startBucket()
    await using relay = await PushRelay.start({ codes: ['a code'] })
    const { notifications } = relay.config
    const shared = {
      SERVICE_PUBLIC_URL: `http://localhost:${await freePort()}`,
      SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
      SERVICE_AGENT_AUTH_SERVICE_AUTH_ENABLED: 'true',
      SERVICE_IROH_ENABLED: 'true',
      SERVICE_IROH_DISCOVERY: 'false',
      SERVICE_NOTIFICATIONS_RELAY: notifications.relay,
      SERVICE_NOTIFICATIONS_RELAY_ADDRESSES: notifications.relayAddresses.join(','),
      SERVICE_NOTIFICATIONS_ENROLLMENT_CODE: 'a code',
    }
    const one = await Machine.make(scratch, 'one', bucket, shared)
    const two = await Machine.make(scratch, 'two', bucket, shared)
    const happen = async ({ url }: Machine) => {
      const json = { type: 'service_auth', login_hint: EMAIL }
      expect((await request(`${url}/agent/identity`, { json, keepalive: false })).status).toBe(200)
    }
    /** Nothing is left to do, so nothing is sent once more later. */
    const isDone = async ({ url }: Machine) => /notify_queue_depth\S* 0\n/.test((await request(`${url}/metrics`)).body)
    try {
      one.begin('dev')
      await until(() => one.promises())
      const json = { handle: 'petra.test', email: EMAIL, password: 'the password' }
      const account = (await request(`${one.url}/xrpc/com.atproto.server.createAccount`, { json })).body
      const phone = new Phone(one, account)
      expect((await phone.register()).status).toBe(200)
      await until(async () => relay.handleOf(phone.token) !== undefined && (await isDone(one)))
      await happen(one)
      await until(async () => relay.sent.length === 1 && (await isDone(one)))

      two.begin('follow')
      await until(() => two.hasCopy())
      const held = Promise.withResolvers<void>()
      relay.held = held.promise
      await happen(one)
      // The relay has it, and has not said so. Another one waits behind it.
      await until(() => relay.sent.length === 2)
      await happen(one)
      one.strike(fault)
      relay.held = null

      await two.server!.listening
      await until(async () => relay.sent.length >= 4 && (await isDone(two)))
      held.resolve()
      await one.recover()
      await happen(two)
      await until(async () => relay.sent.length >= 5 && (await isDone(two)))

      const there = new Phone(two, account, phone.uuid, phone.token, phone.device)
      const told = await Promise.all(relay.sent.map((sent) => there.read(sent)))
      const ids = told.map(({ data }) => (data as { claimAttemptId: string }).claimAttemptId)
      const [first, second, third, fourth] = new Set(ids)
      expect(ids).toEqual([first!, second!, second!, third!, fourth!])
      expect(relay.enrolled.size).toBe(1)
      expect(relay.devices).toHaveLength(1)
    } finally {
      await one.end()
      await two.end()
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  MAX_MILLIS,
)
