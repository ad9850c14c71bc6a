/** What a machine that follows says while its copy falls behind. */
import { expect, test } from 'bun:test'
import { route } from '../../../src/http/endpoint.ts'
import { createFollowerEdge } from '../../../src/http/follower-edge.ts'
import { onlyHere } from '../../../src/platform/database/reader-database.ts'
import type { Context } from '../../../src/platform/context.ts'
import { readingContext } from '../../../src/platform/readers/reading-context.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { Limits } from '../../../src/platform/running/limits.ts'
import { testLog } from '../../support/log.ts'
import { testConfig } from '../../support/servers/config.ts'

function follower() {
  const state = { now: 0, completeAt: null as number | null, isReadable: true, serving: null as string | null }
  const config = testConfig({ port: 1, publicUrl: 'http://localhost:1', dataDir: '/nowhere' }, {})
  const { log } = testLog(() => 0)
  const ctx = readingContext({
    config,
    db: onlyHere<Context['db']>('db', { cluster: null }),
    clock: systemClock,
    log,
    limits: new Limits(config, systemClock),
  })
  const { dispatch } = createFollowerEdge({
    clock: { monotonic: () => state.now },
    state: () => ({
      behindMillis: state.completeAt === null ? null : state.now - state.completeAt,
      at: null,
      fault: null,
    }),
    serving: () => state.serving,
    reads: {
      ctx,
      endpoints: [
        route('GET', '/slow', {
          handler() {
            state.now += 1500
            return {}
          },
        }),
      ],
      isReadable: () => state.isReadable,
    },
  })
  const get = async (path: string) => {
    const peer = { addressOf: () => '203.0.113.7', mayIdle() {}, upgrade: () => false }
    const request = new Request(`http://localhost:1${path}`, { headers: { host: 'localhost:1' } })
    const { status, headers } = await dispatch(request, peer)
    return { status, age: headers.get('age') }
  }
  return { state, get }
}

test('the age counts from the last look that found nothing more, to the end of the answer', async () => {
  const { state, get } = follower()
  state.completeAt = 0
  for (const [now, age] of [
    [0, '2'],
    [499, '2'],
    [501, '3'],
    [58_000, '60'],
  ] as const) {
    state.now = now
    expect(await get('/slow')).toMatchObject({ status: 200, age })
  }
})

test('a copy that is more than a minute behind, none, or one that is being changed, is not read', async () => {
  const { state, get } = follower()
  const statuses = async () => {
    const found = []
    for (const path of ['/slow', '/xrpc/_health', '/readyz', '/livez']) found.push((await get(path)).status)
    return found
  }
  expect(await statuses()).toEqual([503, 503, 503, 200])
  state.completeAt = 0
  state.now = 58_500
  expect(await statuses()).toEqual([200, 200, 503, 200])
  state.now = 60_001
  expect(await statuses()).toEqual([503, 503, 503, 200])
  state.completeAt = state.now
  expect(await statuses()).toEqual([200, 200, 503, 200])
  state.isReadable = false
  expect(await statuses()).toEqual([503, 503, 503, 200])
})
