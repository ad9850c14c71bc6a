import { expect, test } from 'bun:test'
import { BatchLoop } from './batch-loop.ts'
import { inRequest, requestIdHere } from './request-scope.ts'

/** A loop that takes what has arrived, at most `most` at a time, in batches that a test lets end. */
function gated(most = Infinity) {
  const waiting: string[] = []
  const batches: string[][] = []
  const ends: (() => void)[] = []
  const loop = new BatchLoop(async () => {
    batches.push(waiting.splice(0, most))
    await new Promise<void>((resolve) => ends.push(resolve))
    return waiting.length > 0
  })
  return {
    loop,
    batches,
    arrive(item: string) {
      waiting.push(item)
      loop.wake()
    },
    /** Resolves once what follows the end of a batch has run. */
    async end() {
      ends.shift()!()
      await new Promise(setImmediate)
    },
  }
}

test('what arrives while a batch is under way is the next batch, together', async () => {
  const { loop, batches, arrive, end } = gated()
  for (const item of ['a', 'b', 'c']) arrive(item)
  expect(batches).toEqual([['a']])
  await end()
  expect(batches).toEqual([['a'], ['b', 'c']])
  await end()
  expect(batches).toHaveLength(2)
  expect(loop.isRunning).toBe(false)
})

test('a batch that leaves something is followed by another without a call', async () => {
  const { batches, arrive, end } = gated(2)
  for (const item of ['a', 'b', 'c', 'd']) arrive(item)
  for (let i = 0; i < 3; i++) await end()
  expect(batches).toEqual([['a'], ['b', 'c'], ['d']])
})

test('a call during the last batch is not missed', async () => {
  const { loop, batches, arrive, end } = gated()
  arrive('a')
  loop.wake()
  await end()
  expect(batches).toEqual([['a'], []])
  await end()
  arrive('b')
  expect(batches).toEqual([['a'], [], ['b']])
})

test('what arrives in the same turn shares the first batch, if the loop gathers', async () => {
  const batches: number[] = []
  let waiting = 0
  const loop = new BatchLoop(
    () => {
      batches.push(waiting)
      waiting = 0
      return Promise.resolve(false)
    },
    { gathering: () => new Promise(setImmediate) },
  )
  for (let i = 0; i < 3; i++) {
    waiting++
    loop.wake()
  }
  expect(batches).toEqual([])
  await loop.idle()
  expect(batches).toEqual([3])
})

test('the end of all batches can be awaited, also of those that are due by then', async () => {
  const { loop, arrive, end } = gated()
  await loop.idle()
  arrive('a')
  arrive('b')
  let isIdle = false
  const idle = loop.idle().then(() => (isIdle = true))
  await end()
  expect(isIdle).toBe(false)
  await end()
  await idle
  expect(loop.isRunning).toBe(false)
})

test('batches run on behalf of no request, although one has started them', async () => {
  const ids: (string | undefined)[] = []
  const loop = new BatchLoop(() => {
    ids.push(requestIdHere())
    return Promise.resolve(false)
  })
  inRequest({ requestId: 'one', resumed() {} }, () => loop.wake())
  await loop.idle()
  expect(ids).toEqual([undefined])
})
