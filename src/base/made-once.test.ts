import { expect, test } from 'bun:test'
import { thrownBy } from '../../tests/support/thrown.ts'
import { madeOnce } from './made-once.ts'

test('what was made is kept, for those too who ask while it is being made', async () => {
  let calls = 0
  const number = madeOnce(async () => ++calls)
  expect(await Promise.all([number(), number()])).toEqual([1, 1])
  expect(await number()).toBe(1)
})

test('a failure is told to all who wait, and the next who asks tries again', async () => {
  let calls = 0
  const number = madeOnce(async () => {
    if (++calls === 1) throw new Error('not now')
    return calls
  })
  const [first, second] = [number(), number()]
  expect(await thrownBy(first)).toThrow('not now')
  expect(await thrownBy(second)).toThrow('not now')
  expect(await Promise.all([number(), number()])).toEqual([2, 2])
})

test('what is made at once is kept too, even if it is nothing', () => {
  let calls = 0
  const nothing = madeOnce(() => {
    if (++calls === 1) throw new Error('not now')
    return null
  })
  expect(nothing).toThrow('not now')
  expect([nothing(), nothing(), calls]).toEqual([null, null, 2])
})
