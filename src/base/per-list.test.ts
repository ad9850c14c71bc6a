import { expect, test } from 'bun:test'
import { perList } from './per-list.ts'

test('a list with the same items has the same result, and any other list another one', () => {
  let made = 0
  const joined = perList((list: readonly string[]) => ({ text: list.join(), made: ++made }))
  const first = joined(['a', 'b'])
  expect(joined(['a', 'b'])).toBe(first)
  expect(joined(['b', 'a'])).toEqual({ text: 'b,a', made: 2 })
  expect(joined(['a'])).toEqual({ text: 'a', made: 3 })
  expect(joined(['a', 'b', 'c'])).toEqual({ text: 'a,b,c', made: 4 })
  expect(joined(['a', 'b'])).toBe(first)
})

test('a list that changes later does not change what was made of it', () => {
  const length = perList((list: readonly number[]) => ({ length: list.length }))
  const list = [1]
  const before = length(list)
  list.push(2)
  expect(length(list)).toEqual({ length: 2 })
  expect(length([1])).toBe(before)
})

test('of many lists the newest are kept', () => {
  let made = 0
  const counted = perList((list: readonly number[]) => ({ list: list.join(), made: ++made }))
  for (let i = 0; i < 20; i++) counted([i])
  expect(counted([19]).made).toBe(20)
  expect(counted([0]).made).toBe(21)
})
