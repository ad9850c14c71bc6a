import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withConfigTable } from '../../src/platform/config-table.ts'

test('the README lists the configuration as it is declared ("bun run docs" writes it)', () => {
  const readme = readFileSync(join(import.meta.dir, '../../README.md'), 'utf8')
  expect(withConfigTable(readme) === readme).toBe(true)
})
