import { expect, test } from 'bun:test'
import { Lanes } from './keyed-queue.ts'

test('one key runs one at a time and in order, whatever fails; other keys do not wait', async () => {
  const lanes = new Lanes()
  const said: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = lanes.run('a', async () => {
    await gate.promise
    said.push('first')
    throw new Error('no')
  })
  const second = lanes.run('a', async () => void said.push('second'))
  await lanes.run('b', async () => void said.push('other'))
  expect(said).toEqual(['other'])
  gate.resolve()
  await expect(first).rejects.toThrow('no')
  await second
  expect(said).toEqual(['other', 'first', 'second'])
  await lanes.run('b', async () => undefined)
  expect(lanes.size).toBe(0)
})
