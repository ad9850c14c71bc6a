import { expect, test } from 'bun:test'
import { Semaphore, SemaphoreFull } from './semaphore.ts'
import { errorOf } from '../../tests/support/thrown.ts'

test('no more run at a time than there are permits, in the order they came, and every permit comes back', async () => {
  const semaphore = new Semaphore(2, 10)
  let running = 0
  let most = 0
  const order: number[] = []
  const work = (n: number) => async () => {
    most = Math.max(most, ++running)
    order.push(n)
    await new Promise(setImmediate)
    running--
    if (n === 1) throw new Error('failed')
    return n
  }
  const results = await Promise.allSettled([0, 1, 2, 3, 4, 5].map((n) => semaphore.run(work(n))))
  expect(most).toBe(2)
  expect(order).toEqual([0, 1, 2, 3, 4, 5])
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ])
  expect(await Promise.all([semaphore.run(work(6)), semaphore.run(work(7))])).toEqual([6, 7])
})

test('who would wait behind too many is turned away', async () => {
  const semaphore = new Semaphore(1, 1)
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = semaphore.run(() => promise)
  const second = semaphore.run(async () => 'second')
  expect(await errorOf(semaphore.run(async () => 'third'))).toBeInstanceOf(SemaphoreFull)
  resolve()
  await first
  expect(await second).toBe('second')
  expect(await semaphore.run(async () => 'later')).toBe('later')
})
