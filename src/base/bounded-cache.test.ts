import { expect, test } from 'bun:test'
import { BoundedCache } from './bounded-cache.ts'

test('the newest half is always there, and never more than all', () => {
  const kept = new BoundedCache<number>(10)
  for (let i = 0; i < 1000; i++) {
    kept.set(`${i}`, i)
    for (let newest = Math.max(0, i - 4); newest <= i; newest++) expect(kept.get(`${newest}`)).toBe(newest)
    expect(kept.size).toBeLessThanOrEqual(10)
  }
})

test('what is set again has its new value, what is deleted is gone from both generations', () => {
  const kept = new BoundedCache<string>(10)
  kept.set('a', 'old')
  kept.turn()
  kept.set('a', 'new')
  expect(kept.get('a')).toBe('new')
  kept.delete('a')
  expect(kept.get('a')).toBeUndefined()
})

test('what is used is as young as what was set, and what is not goes', () => {
  const kept = new BoundedCache<string>(10)
  kept.set('used', 'a')
  kept.set('unused', 'b')
  for (let i = 0; i < 3; i++) {
    kept.turn()
    expect(kept.use('used')).toBe('a')
  }
  expect(kept.use('unused')).toBeUndefined()
})

test('two turns forget everything', () => {
  const kept = new BoundedCache<number>(10)
  kept.set('a', 1)
  kept.turn()
  expect(kept.get('a')).toBe(1)
  kept.turn()
  expect(kept.size).toBe(0)
})

test('entries may have weights: together they stay below the bound, whatever is set again', () => {
  const kept = new BoundedCache<string>(100, (key, text) => key.length + text.length)
  for (let i = 0; i < 1000; i++) {
    const key = String(i % 7)
    const text = 'x'.repeat(i % 40)
    kept.set(key, text)
    expect(kept.get(key)).toBe(text)
    const weights = Array.from({ length: 7 }, (_, k) => kept.get(String(k))?.length ?? 0)
    expect(weights.reduce((all, one) => all + one)).toBeLessThanOrEqual(100)
  }
})

test('what is heavier than the bound goes when others come', () => {
  const kept = new BoundedCache<string>(10, (_, text) => text.length)
  kept.set('heavy', 'x'.repeat(50))
  expect(kept.get('heavy')).toHaveLength(50)
  for (let i = 0; i < 6; i++) kept.set(String(i), 'x')
  expect(kept.get('heavy')).toBeUndefined()
  expect(kept.get('0')).toBe('x')
})
