import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { LoginAttempts, MAX_FAILURES, type Attempts } from './login-attempts.ts'

const HERE = '203.0.113.0/24'
const ELSEWHERE = '198.51.100.0/24'

/** Attempts, and a function that lets time pass. */
function attemptsInTime() {
  let now = 0
  const attempts = new LoginAttempts({ monotonic: () => now })
  const enter = (name: string, network = HERE) => attempts.enter(name, network)
  const leave = (entered: Awaited<ReturnType<typeof enter>>, network = HERE) =>
    attempts.leave(entered as Attempts, true, network)
  const fail = async (name: string, network = HERE) => leave(await enter(name, network), network)
  return { attempts, enter, leave, fail, pass: (secs: number) => void (now += secs * 1000) }
}

test('identifiers are forgotten once their failures no longer count, and not before', async () => {
  const { attempts, enter, fail, pass } = attemptsInTime()
  for (let i = 0; i < MAX_FAILURES; i++) await fail('alice.test')
  for (let i = 0; i < 1000; i++) await fail(`nobody${i}.test`)
  pass(59)
  expect(await enter('alice.test')).toEqual({ byOthers: false })
  for (const name of ['one.test', 'another.test']) {
    pass(61)
    await fail(name)
  }
  expect(attempts.size).toBe(2)
})

test('a failure counts for a minute from the end of the attempt', async () => {
  const { enter, leave, fail, pass } = attemptsInTime()
  const slow = await Promise.all(Array.from({ length: MAX_FAILURES }, () => enter('alice.test')))
  pass(61)
  await fail('one.test')
  for (const attempt of slow) leave(attempt)
  pass(59)
  await fail('another.test')
  expect(await enter('alice.test')).toEqual({ byOthers: false })
})

test('others have a part in a block while one of the failures is from another network', async () => {
  const { enter, fail, pass } = attemptsInTime()
  await fail('alice.test', ELSEWHERE)
  pass(59)
  for (let i = 1; i < MAX_FAILURES; i++) await fail('alice.test')
  expect(await enter('alice.test')).toEqual({ byOthers: true })
  expect(await enter('alice.test', ELSEWHERE)).toEqual({ byOthers: true })
  pass(2)
  await fail('alice.test')
  expect(await enter('alice.test')).toEqual({ byOthers: false })
})

test('of a long text of which an identifier is the beginning, nothing is kept', async () => {
  const { fail } = attemptsInTime()
  Bun.gc(true)
  const before = heapStats().heapSize
  for (let i = 0; i < 50; i++) await fail(`${i}${'x'.repeat(1_000_000)}`.toLowerCase().slice(0, 2048))
  Bun.gc(true)
  expect(heapStats().heapSize - before).toBeLessThan(10_000_000)
})
