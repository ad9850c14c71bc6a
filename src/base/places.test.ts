import { expect, test } from 'bun:test'
import type { Client } from './fair-queue.ts'
import { NoPlace, Places } from './places.ts'
import { errorOf, thrownBy } from '../../tests/support/thrown.ts'

const client = (network: string, address = network, provider = network): Client => ({ provider, network, address })

/** Lets everybody enter in this order. Returns who got in so far, and how each of them leaves. */
function visits(places: Places) {
  const entered: string[] = []
  const leaves = new Map<string, () => void>()
  const refused: string[] = []
  return {
    entered,
    refused,
    leave: (name: string) => leaves.get(name)!(),
    async come(name: string, who: Client, signal?: AbortSignal) {
      places.enter(who, signal && (() => signal)).then(
        (leave) => {
          entered.push(name)
          leaves.set(name, leave)
        },
        (error: Error) => refused.push(`${name}: ${error.message}`),
      )
      await new Promise(setImmediate)
    },
    async settle() {
      await new Promise(setImmediate)
    },
  }
}

test('networks take turns, and so do the addresses of a network', async () => {
  const places = new Places({ size: 1, maxWaiting: 100 })
  const { come, leave, entered, settle } = visits(places)
  for (let i = 0; i < 4; i++) await come(`busy ${i}`, client('a'))
  await come('other address', client('a', 'a2'))
  await come('new', client('b'))
  await come('new again', client('b'))
  for (let i = 0; i < 7; i++) {
    leave(entered.at(-1)!)
    await settle()
  }
  expect(entered).toEqual(['busy 0', 'busy 1', 'new', 'other address', 'new again', 'busy 2', 'busy 3'])
  expect([places.taken, places.waiting]).toEqual([0, 0])
})

test('a network has no more places than it may, also while others are free', async () => {
  const places = new Places({ size: 4, ofNetwork: 2, maxWaiting: 100 })
  const { come, leave, entered, settle } = visits(places)
  for (let i = 0; i < 3; i++) await come(`a${i}`, client('a'))
  await come('b0', client('b'))
  expect(entered).toEqual(['a0', 'a1', 'b0'])
  leave('b0')
  await settle()
  expect(entered).toEqual(['a0', 'a1', 'b0'])
  leave('a0')
  leave('a0')
  await settle()
  expect(entered).toEqual(['a0', 'a1', 'b0', 'a2'])
  expect(places.taken).toBe(2)
})

test('whoever has most of those that wait loses its newest to somebody who comes', async () => {
  const places = new Places({ size: 1, maxWaiting: 3 })
  const { come, entered, refused, leave, settle } = visits(places)
  for (let i = 0; i < 5; i++) await come(`busy ${i}`, client('a'))
  expect(refused).toEqual(['busy 4: the queue is full'])
  await come('new', client('b'))
  expect(refused.slice(1)).toEqual(['busy 3: the queue is full'])
  for (const name of ['busy 0', 'busy 1', 'new']) {
    leave(name)
    await settle()
  }
  expect(entered).toEqual(['busy 0', 'busy 1', 'new', 'busy 2'])
})

test('whoever waits too long, or goes away, is not waited for', async () => {
  const places = new Places({ size: 1, maxWaiting: 3, waitMillis: 20 })
  const { come, entered, refused, leave, settle } = visits(places)
  await come('first', client('a'))
  const gone = new AbortController()
  await come('gone', client('b'), gone.signal)
  gone.abort(new Error('went away'))
  expect(await errorOf(places.enter(client('c')))).toBeInstanceOf(NoPlace)
  expect(refused).toEqual(['gone: went away'])
  await come('late', client('d'))
  leave('first')
  await settle()
  expect(entered).toEqual(['first', 'late'])
  expect(await thrownBy(places.enter(client('e'), () => gone.signal))).toThrow('went away')
  leave('late')
  expect([places.taken, places.waiting]).toEqual([0, 0])
})

test('work that fails gives its place back', async () => {
  const places = new Places({ size: 1, maxWaiting: 1 })
  expect(await thrownBy(places.run(client('a'), () => Promise.reject(new Error('failed'))))).toThrow('failed')
  expect(await places.run(client('a'), async () => 'done')).toBe('done')
})

test('a provider with hundreds of networks keeps nobody else from waiting, and from the next place', async () => {
  const places = new Places({ size: 1, maxWaiting: 200 })
  const { come, entered, refused, leave, settle } = visits(places)
  for (let i = 0; i < 300; i++) await come(`flood ${i}`, client(`a${i}`, `a${i}`, 'a'))
  expect(refused).toHaveLength(99)
  await come('new', client('b'))
  await come('new too', client('c'))
  expect(refused.filter((name) => name.startsWith('new'))).toEqual([])
  for (let i = 0; i < 3; i++) {
    leave(entered.at(-1)!)
    await settle()
  }
  expect(entered.slice(1)).toEqual(['flood 1', 'new', 'new too'])
  expect(places.waiting).toBe(198 - 1)
})

test('who a client is matters only while its network may have used up its places', async () => {
  const places = new Places({ size: 3, ofNetwork: 2, maxWaiting: 100 })
  const { come, leave, entered, settle } = visits(places)
  let questions = 0
  const asked = (network: string): Client => ({
    ...client(network),
    get network() {
      questions++
      return network
    },
  })
  await come('a0', asked('a'))
  await come('a1', asked('a'))
  expect(questions).toBe(0)
  await come('a2', asked('a'))
  expect(entered).toEqual(['a0', 'a1'])
  expect(questions).toBeGreaterThan(0)
  leave('a0')
  await settle()
  expect(entered).toEqual(['a0', 'a1', 'a2'])
})
