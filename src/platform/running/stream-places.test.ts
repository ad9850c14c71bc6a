import { expect, test } from 'bun:test'
import { NoPlace } from '../../base/places.ts'
import { inRequest } from './request-scope.ts'
import { StreamPlaces, type StreamPlace } from './stream-places.ts'
import { thrownBy } from '../../../tests/support/thrown.ts'

const bounds = { size: 10, ofNetwork: 2, maxWaiting: 10, waitMillis: 20, patienceMillis: 0, maxStragglers: 3 }
const here = new AbortController()

function placesOf(enabled = true) {
  const places = new StreamPlaces({ rateLimit: { enabled } } as ConstructorParameters<typeof StreamPlaces>[0], bounds)
  const enter = (network: string): Promise<StreamPlace> =>
    inRequest({ client: { address: network, network, provider: network }, resumed: () => {} }, () => places.enter(here))
  return { places, enter }
}

test('a slow client gives its place back, and the oldest of those who are most is cut off when there are too many', async () => {
  const { places, enter } = placesOf()
  const cut: string[] = []
  for (const name of ['a1', 'b1', 'a2', 'c1', 'a3', 'b2']) {
    const place = await enter(name[0]!)
    place.handOver(() => {
      cut.push(name)
      place.leave()
    })
    await Bun.sleep(2)
    expect([places.taken, places.stragglers <= bounds.maxStragglers]).toEqual([0, true])
  }
  expect(cut).toEqual(['a1', 'a2', 'b1'])
})

test('whoever leaves in time is none of them, and leaving twice frees one place', async () => {
  const { places, enter } = placesOf()
  const [first, second] = [await enter('a'), await enter('a')]
  first.handOver(() => {})
  first.leave()
  first.leave()
  first.handOver(() => {})
  await Bun.sleep(2)
  expect([places.taken, places.stragglers]).toEqual([1, 0])
  second.handOver(() => {})
  await Bun.sleep(2)
  expect([places.taken, places.stragglers]).toEqual([0, 1])
  second.leave()
  second.leave()
  expect([places.taken, places.stragglers]).toEqual([0, 0])
})

test('a network has no more than its part, unless there are no rate limits', async () => {
  const { places, enter } = placesOf()
  await enter('a')
  await enter('a')
  expect(await thrownBy(enter('a'))).toThrow(NoPlace)
  expect(places.taken).toBe(2)
  const { places: open, enter: enterOpen } = placesOf(false)
  for (let i = 0; i < bounds.size; i++) await enterOpen('a')
  expect(open.taken).toBe(bounds.size)
})
