import { expect, test } from 'bun:test'
import { isDeeperThan, jsonExcess } from './json-depth.ts'

const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`

test.each([
  ['1', 0, false],
  ['[]', 0, true],
  ['[]', 1, false],
  ['[[],[],[],{}]', 2, false],
  ['[[],[],[],[{}]]', 2, true],
  ['"[[[[[["', 0, false],
  ['["\\"[[[[", "\\\\", []]', 2, false],
  ['["\\\\", [[', 2, true],
  [nested(256), 256, false],
  [nested(258), 256, true],
])('%s is deeper than %d: %p', (text, maxDepth, deeper) => {
  expect(isDeeperThan(text, maxDepth)).toBe(deeper)
})

test.each([
  ['[[],[],{}]', 4, null],
  ['[[],[],{}]', 3, 'parts'],
  ['["[[[","{",1,2]', 1, null],
  ['[[[[[]]]]]', 5, 'depth'],
] as const)('%s, of which %d lists and objects are permitted: %p', (text, maxParts, excess) => {
  expect(jsonExcess(text, 3, maxParts)).toBe(excess)
})
