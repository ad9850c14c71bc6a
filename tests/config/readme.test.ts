import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { README, withTables } from '../../src/docs.ts'

test('the README lists commands and configuration as they are declared ("bun run docs" writes it)', () => {
  const readme = readFileSync(README, 'utf8')
  expect(withTables(readme) === readme).toBe(true)
})
