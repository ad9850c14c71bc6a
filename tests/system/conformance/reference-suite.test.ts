/**
 * The table of the reference's own tests: every test of ours that it names is there. docs/design/reference-tests.md
 * shows it.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { referenceSuite } from '../../../src/docs.ts'
import { hasTest } from '../../architecture/test-names.ts'

const suite = referenceSuite()

test.each(suite.files)('every test of ours that stands for one of $file is in its file', ({ groups }) => {
  const named = groups.flatMap(({ tests = [] }) => tests)
  expect(named.filter(([path, name]) => !hasTest(path, name))).toEqual([])
})

test.each(suite.files)('every test of $file is listed once, with tests of ours, a reason or a gap', ({ groups }) => {
  const names = groups.flatMap((group) => group.names)
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  const unclear = groups.filter(({ tests, reason, gap }) => [tests?.length, reason, gap].filter(Boolean).length !== 1)
  expect(unclear).toEqual([])
})

test('the suite is that of the release to which answers and migrations are compared', () => {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dir, '../../peers/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  expect(suite.package).toBe(`@atproto/pds ${dependencies['@atproto/pds']}`)
})
