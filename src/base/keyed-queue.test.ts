import { expect, test } from 'bun:test'
import { KeyedQueue } from './keyed-queue.ts'
import { thrownBy } from '../../tests/support/thrown.ts'

test('one key runs one at a time and in order, whatever fails; other keys do not wait', async () => {
  const queue = new KeyedQueue()
  const said: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = queue.run('a', async () => {
    await gate.promise
    said.push('first')
    throw new Error('no')
  })
  const second = queue.run('a', async () => void said.push('second'))
  await queue.run('b', async () => void said.push('other'))
  expect(said).toEqual(['other'])
  gate.resolve()
  expect(await thrownBy(first)).toThrow('no')
  await second
  expect(said).toEqual(['other', 'first', 'second'])
  await queue.run('b', async () => undefined)
  expect(queue.size).toBe(0)
})
