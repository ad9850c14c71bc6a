/** What holds up the event loop is measured, and named. */
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { fakeDns, type FakeDns } from '../../support/servers/dns.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { eventLoopTurns, until } from '../../support/until.ts'

const STOOD_STILL = 'event loop stalled'
const COMPUTED_MILLIS = 400

/** Keep the processor busy, for so much of its own time: on a busy machine that takes longer. */
function compute(millis = COMPUTED_MILLIS): void {
  const used = () => process.threadCpuUsage().user + process.threadCpuUsage().system
  for (const end = used() + millis * 1000; used() < end;);
}

let pds: TestPds
let dns: FakeDns
beforeEach(async () => {
  dns = fakeDns()
  // A part of the server that computes when a name is looked up.
  const slowly = { ...dns, texts: (name: string) => (name.includes('slow') && compute(), dns.texts(name)) }
  // Each node tells of its own.
  pds = await startPds({}, { resolver: slowly, sharesDatabase: false })
})
afterEach(() => pds[Symbol.asyncDispose]())

const longest = async () =>
  (await request(`${pds.url}/v1/admin/health`, { headers: bearer(ADMIN_TOKEN) })).body.eventLoop.longestStall as {
    seconds: number
    route: string | null
    cause: string
    at: string
  } | null
const lines = () => pds.log.filter(({ message }) => message === STOOD_STILL)
const metric = async (name: string) =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec((await request(`${pds.url}/metrics`)).body)?.[1])

test('a request that computes for long is named in the log, the health and the metrics', async () => {
  expect(await metric('event_loop_longest_stall_seconds')).toBeGreaterThanOrEqual(0)
  await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=slow.example.com')
  await until(() => lines().length > 0)
  expect(lines()).toEqual([
    expect.objectContaining({
      level: 'warn',
      route: 'com.atproto.identity.resolveHandle',
      durationMillis: expect.any(Number),
    }),
  ])
  const stall = await longest()
  expect(stall).toMatchObject({ route: 'com.atproto.identity.resolveHandle', at: expect.stringMatching(/Z$/) })
  // The timer was due within 25 ms of its beginning.
  expect(stall!.seconds).toBeGreaterThanOrEqual((COMPUTED_MILLIS - 30) / 1000)
  expect(Number(lines()[0]!.durationMillis) / 1000).toBe(stall!.seconds)
  expect(await metric('event_loop_longest_stall_seconds')).toBe(stall!.seconds)
  expect(
    (await metric('event_loop_stalls_total\\{cause="computing"\\}')) +
      (await metric('event_loop_stalls_total\\{cause="waiting"\\}')),
  ).toBeGreaterThan(0)
  pds.clock.advance({ secs: 1201 })
  expect(await metric('event_loop_longest_stall_seconds')).toBeLessThan(stall!.seconds)
})

test('a request that goes on after its body has come is named, and not the one that came in between', async () => {
  const alice = await createAccount(pds, 'alice')
  const body = JSON.stringify({ handle: 'slow.example.com' })
  const socket = connect(Number(new URL(pds.url).port), '127.0.0.1')
  socket.write(
    `POST /xrpc/com.atproto.identity.updateHandle HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${alice.accessJwt}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  await xrpc(pds, 'com.atproto.server.getSession', { headers: bearer(alice.accessJwt) })
  await xrpc(pds, 'com.atproto.server.describeServer')
  socket.write(body)
  await until(() => lines().length > 0)
  socket.destroy()
  expect(lines().map(({ route }) => route)).toEqual(['com.atproto.identity.updateHandle'])
})

test('what no request has caused is told without a name', async () => {
  // The one sweep that runs at the start would be named while it waits for the database.
  await pds.runSweep('abandoned-repos')
  await xrpc(pds, 'com.atproto.server.describeServer')
  await eventLoopTurns(2)
  compute()
  await until(() => lines().length > 0)
  expect(lines()[0]).not.toHaveProperty('route')
  expect(await longest()).toMatchObject({ route: null })
})
