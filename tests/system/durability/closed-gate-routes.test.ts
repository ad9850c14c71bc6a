/**
 * Every endpoint that writes, while the destination of the continuous backup takes nothing, and once another machine
 * has taken over: each says that it is unavailable, in the format of its surface, and gives no other reason.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Following } from '../../../src/features/operations/backup/backup.ts'
import { systemClock } from '../../../src/platform/running/clock.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import { testLog } from '../../support/log.ts'
import { testConfig } from '../../support/servers/config.ts'
import { until } from '../../support/until.ts'
import { endpointOf, faultOfRefusal, storingNothing, strangers } from './refused-routes.ts'
import { POLL_SECS, useWritingWorld, type PreparedRequest } from './writing-world.ts'

/** Hundreds of requests are prepared, each for an account of its own. */
setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'holdfast-closed-gate-'))
afterAll(() => rmSync(folder, { recursive: true }))
const place = join(folder, 'destination')
const backup = { continuous: place, continuousPromise: 'sync' } as const
const { pds, prepare } = useWritingWorld(folder, { backup })

async function answersOf(prepared: readonly PreparedRequest[]): Promise<Map<string, Answer>> {
  const answers = new Map<string, Answer>()
  for (const [name, send] of prepared) answers.set(name, await send())
  return answers
}

const isReady = async () => (await request(`${pds.url}/readyz`)).status === 200
const faults = (answers: ReadonlyMap<string, Answer>) =>
  Array.from(answers, ([name, answer]) => faultOfRefusal(name, answer)).filter((fault) => fault !== null)

/** At the destination, a file takes the place of the folder. */
function takeAway(): () => void {
  renameSync(place, `${place}.away`)
  writeFileSync(place, '')
  return () => {
    rmSync(place)
    renameSync(`${place}.away`, place)
  }
}

let underWay: ReadonlyMap<string, Answer>
let closed: ReadonlyMap<string, Answer>
let after: ReadonlyMap<string, Answer>
let replaced: ReadonlyMap<string, Answer>
beforeAll(async () => {
  await until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup?.promise === 'sync')
  const first = await prepare('first')
  let bringBack = takeAway()
  underWay = new Map(await Promise.all(first.map(async ([name, send]) => [name, await send()] as const)))
  bringBack()
  await until(isReady)

  const prepared = await prepare('person')
  bringBack = takeAway()
  const unknown = createAccount(pds, 'waiting').catch((error: Error) => error.message)
  await until(async () => !(await isReady()))
  closed = await answersOf(prepared)
  expect(await unknown).toContain('503')
  bringBack()
  await until(isReady)
  pds.clock.advance({ secs: POLL_SECS })
  after = await answersOf(prepared)

  const more = await prepare('other')
  const config = testConfig(
    { dataDir: join(folder, 'second'), port: 1, publicUrl: 'http://localhost:1' },
    { backup, development: true },
  )
  await new Following({ config, clock: systemClock, log: testLog(() => systemClock.now()).log }).promote()
  replaced = await answersOf(more)
})

test('a write that is under way when the destination fails is refused as unavailable', () => {
  // Of those that come together, some of one account are refused for that.
  const refused = Array.from(underWay).filter(([name]) => !(endpointOf(name) in storingNothing))
  expect(refused.filter(([, { status }]) => status !== 503).map(([name, { status }]) => [name, status])).toEqual([])
})

test('while the destination takes nothing, every write is refused as unavailable', () => {
  expect(faults(closed)).toEqual([])
})

test('nothing was used up by it: the same request succeeds once the destination is back', () => {
  expect(Array.from(after).flatMap(([name, { status, body }]) => (status < 400 ? [] : [[name, status, body]]))).toEqual(
    [],
  )
})

test('once another machine has taken over, every write is refused as unavailable', () => {
  expect(faults(replaced)).toEqual([])
})

test('every endpoint that writes is among them', () => {
  expect(strangers(Array.from(closed.keys()))).toEqual([[], []])
})
