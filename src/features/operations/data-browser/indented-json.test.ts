import { expect, test } from 'bun:test'
import { beginningOfJson } from './indented-json.ts'

test('a value that is short enough is as JSON.stringify writes it', () => {
  const values = [
    null,
    'a "text"\n',
    [],
    {},
    { a: [], b: {}, c: [1, [true, null], { d: 'e' }], 'f"g': 'h', __proto: 0 },
    JSON.parse('{"__proto__": {"x": [1]}, "10": 1, "2": 2}') as object,
  ]
  for (const value of values) expect(beginningOfJson(value, 1000)).toBe(JSON.stringify(value, null, 2))
})

test('of a large value, only what is asked for is written, however deep it is', () => {
  let value: unknown = Array.from({ length: 300_000 }, () => 0)
  for (let depth = 0; depth < 120; depth++) value = [value]
  const text = beginningOfJson(value, 20_000)
  expect(text.length).toBeWithin(20_001, 21_000)
  expect(text).toEndWith(`0,\n${' '.repeat(242)}`)
})
