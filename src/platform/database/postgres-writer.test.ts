import { expect, test } from 'bun:test'
import { errorOf } from '../../../tests/support/thrown.ts'
import { DatabaseUnavailable } from './database.ts'
import { WriterQueue, type WriterQueueOptions } from './postgres-writer.ts'

test('a transaction for which there is no room is rejected like any other', async () => {
  const queue = new WriterQueue({ writers: [], exclusive: true } as unknown as WriterQueueOptions)
  for (let i = 0; i < 20_000; i++) void queue.enter(async () => undefined)
  expect(await errorOf(queue.enter(async () => undefined))).toBeInstanceOf(DatabaseUnavailable)
})
