import { expect, test } from 'bun:test'
import { Generations } from './generations.ts'

test('the newest half is always there, and never more than all', () => {
  const kept = new Generations<number>(10)
  for (let i = 0; i < 1000; i++) {
    kept.set(`${i}`, i)
    for (let newest = Math.max(0, i - 4); newest <= i; newest++) expect(kept.get(`${newest}`)).toBe(newest)
    expect(kept.size).toBeLessThanOrEqual(10)
  }
})

test('what is set again has its new value, what is deleted is gone from both generations', () => {
  const kept = new Generations<string>(10)
  kept.set('a', 'old')
  kept.turn()
  kept.set('a', 'new')
  expect(kept.get('a')).toBe('new')
  kept.delete('a')
  expect(kept.get('a')).toBeUndefined()
})

test('two turns forget everything', () => {
  const kept = new Generations<number>(10)
  kept.set('a', 1)
  kept.turn()
  expect(kept.get('a')).toBe(1)
  kept.turn()
  expect(kept.size).toBe(0)
})
