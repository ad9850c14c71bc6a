import { expect, test } from 'bun:test'
import { Reclaiming } from './reclaiming.ts'

test('a node that could not reach the database takes nothing over until the others have had time to give a sign of life', async () => {
  const clock = { millis: 0, monotonic: () => clock.millis }
  let isAway = false
  let reclaimed = 0
  const nodes = async () => {
    if (isAway) throw new Error('away')
    return []
  }
  const reclaiming = new Reclaiming({ cluster: { nodes }, clock, log: { warn: () => undefined } }, [
    async () => void reclaimed++,
  ])
  await reclaiming.look()
  expect(reclaimed).toBe(1)
  isAway = true
  await reclaiming.look()
  isAway = false
  clock.millis += 14_999
  await reclaiming.look()
  expect(reclaimed).toBe(1)
  clock.millis += 1
  await reclaiming.look()
  expect(reclaimed).toBe(2)
})

test('what fails at each look keeps nothing else from being taken over', async () => {
  const done: string[] = []
  const log = { warn: (message: string) => void done.push(message) }
  const clock = { monotonic: () => 0 }
  const reclaiming = new Reclaiming({ cluster: { nodes: async () => [] }, clock, log }, [
    async () => {
      throw new Error('the port is taken')
    },
    async () => void done.push('steps'),
  ])
  await reclaiming.look()
  await reclaiming.look()
  const failed = 'could not check for work of dead nodes'
  expect(done).toEqual([failed, 'steps', failed, 'steps'])
})
