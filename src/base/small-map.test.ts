import { expect, test } from 'bun:test'
import { SmallMap } from './small-map.ts'

test('it behaves like a map, with few entries and with many', () => {
  const small = new SmallMap<number>()
  const map = new Map<string, number>()
  let state = 7
  const below = (bound: number) => (state = (state * 48_271) % 2_147_483_647) % bound
  for (let step = 0; step < 4000; step++) {
    // The number of keys changes slowly, so that both forms are used for long.
    const key = `key ${below(step % 1000 < 500 ? 12 : 60)}`
    if (below(3) === 0) expect(small.delete(key)).toBe(map.delete(key))
    else {
      small.set(key, step)
      map.set(key, step)
    }
    expect(small.get(key)).toBe(map.get(key))
    if (step % 1000 === 999) {
      small.clear()
      map.clear()
    }
    expect(small.values()).toEqual([...map.values()])
    expect(small.entries()).toEqual([...map])
  }
})
