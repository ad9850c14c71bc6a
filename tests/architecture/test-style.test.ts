/** How tests are written, held by rules. Each fault that is found says what to do about it. */
import { expect, test } from 'bun:test'
import { testSources, testsOf } from './test-files.ts'

const cases = testSources.filter(({ path }) => path.endsWith('.test.ts')).flatMap(testsOf)

test('the reader of tests sees those in groups and tables, and the expectations of helpers', () => {
  const inFile = (path: string) => cases.filter((each) => each.path === path)
  expect(inFile('tests/features/firehose/crowds.test.ts').map(({ name }) => name)).toContain(
    '%s has ten, and gets one again when one of its clients leaves',
  )
  const delegating = inFile('tests/features/copying/faults.test.ts')
  expect(delegating.length).toBeGreaterThan(10)
  expect(delegating.filter(({ expects }) => !expects)).toEqual([])
})

test('every test has an expectation', () => {
  const faults = cases.filter(({ expects }) => !expects)
  expect(
    faults.map(
      ({ path, line, name }) =>
        `${path}:${line} "${name}" expects nothing. Say what holds at its end with expect; waiting for it is not a check`,
    ),
  ).toEqual([])
})
