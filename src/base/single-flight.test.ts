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

test('who asks anew waits for the run that began before, and shares the next', async () => {
  const flights = new SingleFlight<string, number>()
  let runs = 0
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const work = async () => {
    const run = runs++
    await gates[run]!.promise
    if (run === 0) throw new Error('no')
    return run
  }
  const before = flights.run('a', work)
  const asked = [flights.runAnew('a', work), flights.runAnew('a', work)]
  gates[0]!.resolve()
  gates[1]!.resolve()
  expect((await Promise.allSettled([before]))[0]!.status).toBe('rejected')
  expect(await Promise.all(asked)).toEqual([1, 1])
})
