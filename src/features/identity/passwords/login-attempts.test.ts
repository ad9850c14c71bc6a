import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { LoginAttempts, MAX_FAILURES } from './login-attempts.ts'

/** Attempts, and a function that lets time pass. */
function attemptsInTime() {
  let now = 0
  const attempts = new LoginAttempts({ monotonic: () => now })
  const fail = async (name: string) => attempts.leave((await attempts.enter(name))!, true)
  return { attempts, fail, pass: (secs: number) => void (now += secs * 1000) }
}

test('identifiers are forgotten once their failures no longer count, and not before', async () => {
  const { attempts, fail, pass } = attemptsInTime()
  for (let i = 0; i < MAX_FAILURES; i++) await fail('alice.test')
  for (let i = 0; i < 1000; i++) await fail(`nobody${i}.test`)
  pass(59)
  expect(await attempts.enter('alice.test')).toBeNull()
  for (const name of ['one.test', 'another.test']) {
    pass(61)
    await fail(name)
  }
  expect(attempts.size).toBe(2)
})

test('a failure counts for a minute from the end of the attempt', async () => {
  const { attempts, fail, pass } = attemptsInTime()
  const slow = await Promise.all(Array.from({ length: MAX_FAILURES }, () => attempts.enter('alice.test')))
  pass(61)
  await fail('one.test')
  for (const attempt of slow) attempts.leave(attempt!, true)
  pass(59)
  await fail('another.test')
  expect(await attempts.enter('alice.test')).toBeNull()
})

test('of a long text of which an identifier is the beginning, nothing is kept', async () => {
  const { fail } = attemptsInTime()
  Bun.gc(true)
  const before = heapStats().heapSize
  for (let i = 0; i < 50; i++) await fail(`${i}${'x'.repeat(1_000_000)}`.toLowerCase().slice(0, 2048))
  Bun.gc(true)
  expect(heapStats().heapSize - before).toBeLessThan(10_000_000)
})
