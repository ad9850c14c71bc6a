import { describe, expect, spyOn, test } from 'bun:test'
import fixtures from '../../tests/vectors/interop/data-model/data-model-fixtures.json'
import valid from '../../tests/vectors/interop/data-model/data-model-valid.json'
import { decode, encode, type Data } from './cbor.ts'
import { cidOfBlob, cidOfCbor } from './cid.ts'
import { dataToJson, jsonToObject } from './data-model.ts'
import { jsonText } from './json-text.ts'
import { Malformed } from './malformed.ts'

describe('a block is the JSON text of its value', () => {
  const values: Record<string, Data> = {
    'every control character, quotes and backslashes': Array.from({ length: 0x80 }, (_, code) =>
      String.fromCharCode(code),
    ),
    'text beyond ASCII': ['é', '中', '💩', '\u2028', 'a💩b'.repeat(200)],
    'numbers of every width': [
      0,
      23,
      24,
      255,
      256,
      65_535,
      65_536,
      2 ** 32 - 1,
      2 ** 32,
      Number.MAX_SAFE_INTEGER,
      -1,
      -24,
      -25,
      -257,
      Number.MIN_SAFE_INTEGER,
    ],
    'bytes of every padding': [0, 1, 2, 3, 4, 47, 48, 49, 300].map((length) => new Uint8Array(length).fill(0xfb)),
    'links of both kinds': [cidOfBlob(new Uint8Array([1])), cidOfCbor(new Uint8Array([1]))],
    'the simple values and nothing at all': [true, false, null, [], {}, ''],
    'maps in maps, with keys that need an escape': { a: { b: [{ '"': 1 }, { '\\': 2 }] } },
  }
  for (const [name, value] of Object.entries(values))
    test(name, () => expect(jsonText(encode(value))).toBe(JSON.stringify(dataToJson(value))))

  test('the records of the interop vectors', () => {
    for (const { json } of [...fixtures, ...valid]) {
      const block = encode(jsonToObject(json))
      expect(jsonText(block)).toBe(JSON.stringify(dataToJson(decode(block))))
    }
  })
})

test('a large block leaves nothing behind in the next one', () => {
  const large = 'x'.repeat(300_000)
  expect(JSON.parse(jsonText(encode({ é: large })))).toEqual({ é: large })
  expect(jsonText(encode([1]))).toBe('[1]')
})

test('the runtime is not asked for each character that needs an escape', () => {
  const escaped = ['\n'.repeat(200), '"\u0001'.repeat(50_000), 'é\\💩'.repeat(1000)]
  const block = encode(escaped)
  const asked = spyOn(JSON, 'stringify')
  const text = jsonText(block)
  const calls = asked.mock.calls.length
  asked.mockRestore()
  expect(calls).toBeLessThanOrEqual(escaped.length)
  expect(text).toBe(JSON.stringify(escaped))
})

test('the runtime is not asked for each byte string that is short', () => {
  const bytes = Array.from({ length: 1000 }, (_, i) =>
    Uint8Array.from({ length: i % 49 }, (__, at) => (i * 31 + at * 7) & 255),
  )
  const block = encode(bytes)
  const asked = spyOn(Buffer, 'from')
  const text = jsonText(block)
  const calls = asked.mock.calls.length
  asked.mockRestore()
  expect(calls).toBe(0)
  expect(text).toBe(JSON.stringify(dataToJson(bytes)))
})

test('what is no whole value is refused', () => {
  for (const hex of [
    '',
    '61',
    '8201',
    'a16161',
    '0102',
    'd82a58250001711220',
    'fb3ff8000000000000',
    '5f4101ff',
    '7b001fffffffffffff',
  ]) {
    expect(() => jsonText(Buffer.from(hex, 'hex'))).toThrow(Malformed)
  }
})
