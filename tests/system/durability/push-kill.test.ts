/**
 * `kill -9` on the way of a push from the request to the relay and back. PUSH_KILLS says how often. An event that was
 * answered is told to the device, at most once more for each kill, and in order; a device that was told that the relay
 * will be asked is known to it in the end.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { Phone } from '../../support/clients/phone.ts'

const KILLS = Number(process.env['PUSH_KILLS'] ?? 9)
const MAX_MILLIS_PER_KILL = 15_000
/** Turns of the event loop between an answer and the kill, another number in each round, so that it falls anywhere. */
const turnsBeforeKill = (round: number) => round * 3

const EMAIL = 'person@example.com'

interface Stage {
  relay: PushRelay
  /** How many pushes the relay had before. */
  before: number
  round: number
}

/** When the server is killed after the event. */
const moments: ((stage: Stage) => Promise<unknown>)[] = [
  // Somewhere between the answer and the push.
  ({ round }) => eventLoopTurns(turnsBeforeKill(round)),
  // The relay has the push, and has not said so.
  ({ relay, before }) => until(() => relay.sent.length > before),
  // It has said so, and that may be written down or not.
  async ({ relay, before, round }) => {
    relay.held = null
    await until(() => relay.sent.length > before)
    await eventLoopTurns(turnsBeforeKill(round))
  },
]

test(
  `after ${KILLS} kills every event was told once, or once more for a kill`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-pushes-'))
    await using relay = await PushRelay.start({ codes: ['a code'] })
    const { notifications } = relay.config
    const env = {
      PORT: String(await freePort()),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
      SERVICE_AGENT_AUTH_SERVICE_AUTH_ENABLED: 'true',
      SERVICE_IROH_ENABLED: 'true',
      SERVICE_IROH_DISCOVERY: 'false',
      SERVICE_NOTIFICATIONS_RELAY: notifications.relay,
      SERVICE_NOTIFICATIONS_RELAY_ADDRESSES: notifications.relayAddresses.join(','),
      SERVICE_NOTIFICATIONS_ENROLLMENT_CODE: 'a code',
    }
    const start = () => startProgram(['dev'], env, folder)
    let account = { did: '', accessJwt: '' }
    let first: Phone | null = null
    const told: string[] = []
    const attempts = async (server: RunningServer) => {
      const phone = new Phone(server, account, first!.uuid, first!.token, first!.device)
      const own = relay.sent.filter(({ token }) => token === first!.token)
      return Promise.all(
        own.map(async (sent) => ((await phone.read(sent))['data'] as { claimAttemptId: string }).claimAttemptId),
      )
    }
    try {
      const never = new Promise<void>(() => {})
      for (let round = 0; round < KILLS; round++) {
        const late: Phone[] = []
        {
          await using server = await start()
          if (first === null) {
            const json = { handle: 'petra.test', email: EMAIL, password: 'the password' }
            account = (await request(`${server.url}/xrpc/com.atproto.server.createAccount`, { json })).body
            first = new Phone(server, account, 'first')
            expect((await first.register()).status).toBe(200)
            await until(() => relay.handleOf(first!.token) !== undefined)
          }
          const before = relay.sent.length
          relay.held = never
          late.push(new Phone(server, account, 'late'))
          const json = { type: 'service_auth', login_hint: EMAIL }
          expect((await request(`${server.url}/agent/identity`, { json })).status).toBe(200)
          await moments[round % moments.length]!({ relay, before, round })
          if (round % 2 === 1) expect((await late[0]!.register()).status).toBe(200)
          server.signal('SIGKILL')
          await server.exited
        }
        relay.held = null
        await using next = await start()
        await until(async () => new Set(await attempts(next)).size === round + 1)
        if (round % 2 === 1) await until(() => relay.handleOf(late[0]!.token) !== undefined)
        // Nothing is left to do, so nothing is sent once more later.
        await until(async () => (await request(`${next.url}/metrics`)).body.includes('notify_queue_depth 0'))
        const all = await attempts(next)
        const counts = Map.groupBy(all, (id) => id)
        expect([...counts.values()].filter((ids) => ids.length > 2)).toEqual([])
        const order = [...counts.keys()]
        expect(order.slice(0, told.length)).toEqual(told)
        told.push(...order.slice(told.length))
      }
      expect(relay.enrolled.size).toBe(1)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)
