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
  ['[[],[],{}]', null],
  ['[[],[],{},{}]', 'parts'],
  ['["[[[","{",1,2]', null],
  ['[[[[[]]]]]', 'depth'],
  ['[{"a":1,"b":{"c":1,"d":":"}},{"e":1}]', null],
  ['[{"a":1,"b":{"c":1},"f":2}]', 'members'],
] as const)('%s exceeds the bound of %p', (text, excess) => {
  expect(jsonExcess(text, { depth: 3, parts: 4, members: 2 })).toBe(excess)
})
