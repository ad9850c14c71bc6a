import { expect, test } from 'bun:test'
import { testConfig } from '../../../tests/support/servers/config.ts'
import type { Reader } from '../database/database.ts'
import { LiveConfig } from './live-config.ts'

const config = testConfig({ dataDir: '/nowhere', port: 1, publicUrl: 'http://localhost:1' })

/** A database that answers when it is told to. */
function slowReader() {
  const { promise, resolve } = Promise.withResolvers<unknown[]>()
  const reader = { all: () => promise } as unknown as Reader
  return { reader, answer: (value: string) => resolve([{ name: 'invite_code_required', value }]) }
}

test('an earlier read that ends later does not bring an old value back', async () => {
  const live = new LiveConfig(config)
  const [first, second] = [slowReader(), slowReader()]
  const reads = [live.reload(first.reader), live.reload(second.reader)]
  second.answer('true')
  await reads[1]
  expect(live.current.inviteCodeRequired).toBe(true)
  first.answer('false')
  await reads[0]
  expect([live.current.inviteCodeRequired, live.replaced.get('invite_code_required')]).toEqual([true, 'true'])
})

test('what a transaction reads holds only once it is reloaded', async () => {
  const live = new LiveConfig(config)
  const { reader, answer } = slowReader()
  answer(String(!config.inviteCodeRequired))
  expect((await live.read(reader)).current.inviteCodeRequired).toBe(!config.inviteCodeRequired)
  expect(live.current).toBe(config)
})
