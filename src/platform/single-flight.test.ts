import { expect, test } from 'bun:test'
import { SingleFlight } from './single-flight.ts'

test('who asks while work of a key runs gets the outcome of that run, and the next begins another', async () => {
  const flights = new SingleFlight<string, number>()
  let runs = 0
  const gate = Promise.withResolvers<void>()
  const work = () => gate.promise.then(() => ++runs)
  const asked = [flights.run('a', work), flights.run('a', work)]
  expect(flights.size).toBe(1)
  gate.resolve()
  expect(await Promise.all(asked)).toEqual([1, 1])
  expect(flights.size).toBe(0)
  expect(await flights.run('a', work)).toBe(2)
})

test('work that fails fails for all who wait, and is forgotten', async () => {
  const flights = new SingleFlight<string, number>()
  const fail = () => Promise.reject(new Error('no'))
  const asked = await Promise.allSettled([flights.run('a', fail), flights.run('a', fail)])
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await flights.run('a', async () => 1)).toBe(1)
})
