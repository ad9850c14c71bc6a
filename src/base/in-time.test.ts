import { expect, test } from 'bun:test'
import { thrownBy } from '../../tests/support/thrown.ts'
import { endsInTime, inTime, LATE } from './in-time.ts'

const never = () => new Promise<never>(() => undefined)

test('work in time gives what it resolves to, or fails as it does', async () => {
  expect(await inTime(Promise.resolve('done'), 60_000)).toBe('done')
  expect(await thrownBy(inTime(Promise.reject(new Error('broken')), 60_000))).toThrow('broken')
})

test('late work is waited for no longer, and may fail unnoticed', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  expect(await inTime(promise, 1)).toBe(LATE)
  reject(new Error('too late'))
  // The runner fails tests for rejections that nobody handles.
  expect(await inTime(Promise.resolve('the next'), 60_000)).toBe('the next')
})

test('work that fails has ended too', async () => {
  expect(await endsInTime(Promise.reject(new Error('broken')), 60_000)).toBe(true)
  expect(await endsInTime(never(), 1)).toBe(false)
})
