import { describe, expect, test } from 'bun:test'
import { decode as cborgDecode, encode as cborgEncode, Token, Type } from 'cborg'
import { CID } from 'multiformats/cid'
import { decode, decodeFirst, encode, MAX_DEPTH_LEVELS, type Data, type DataObject } from './cbor.ts'
import { Cid, cidOfBlob, cidOfCbor } from './cid.ts'
import { Malformed } from './malformed.ts'

const link = cidOfCbor(new Uint8Array([1, 2, 3]))

/** The codec of `cborg`, set up as `@ipld/dag-cbor` does it: an independent opinion. */
const oracleOptions = {
  float64: true,
  typeEncoders: {
    Object: (value: unknown) => {
      const cid = CID.asCID(value)
      return cid ? [new Token(Type.tag, 42), new Token(Type.bytes, new Uint8Array([0, ...cid.bytes]))] : null
    },
  },
}
const oracleEncode = (value: Data) => new Uint8Array(cborgEncode(value, oracleOptions))
const oracleTags: ((bytes: Uint8Array) => Cid)[] = []
oracleTags[42] = (bytes) => new Cid(bytes.slice(1))
const oracleDecode = (bytes: Uint8Array): unknown =>
  cborgDecode(bytes, {
    strict: true,
    allowIndefinite: false,
    allowUndefined: false,
    allowNaN: false,
    allowInfinity: false,
    rejectDuplicateMapKeys: true,
    tags: oracleTags,
  })

function randomValue(depth: number): Data {
  const kind = Math.floor(Math.random() * (depth > 0 ? 10 : 7))
  switch (kind) {
    case 0:
      return null
    case 1:
      return Math.random() < 0.5
    case 2:
      return Math.floor((Math.random() - 0.5) * 2 ** Math.floor(Math.random() * 54))
    case 3:
    case 4:
      return randomText()
    case 5:
      return crypto.getRandomValues(new Uint8Array(Math.floor(Math.random() * 80)))
    case 6:
      return Math.random() < 0.5 ? link : cidOfBlob(crypto.getRandomValues(new Uint8Array(4)))
    case 7:
      return Array.from({ length: Math.floor(Math.random() * 30) }, () => randomValue(depth - 1))
    default:
      return randomMap(depth)
  }
}

function randomMap(depth: number): DataObject {
  return Object.fromEntries(
    Array.from({ length: Math.floor(Math.random() * 40) }, () => [randomText(), randomValue(depth - 1)]),
  )
}

const letters = ['a', 'b', '$type', '\u0000', 'é', '💩', '中', '\uffee', 'zz', '7']
const randomText = () =>
  Array.from({ length: Math.floor(Math.random() * 9) }, () => letters[Math.floor(Math.random() * letters.length)]).join(
    '',
  )

/** `toEqual` takes its time on bytes, and these are many. */
const expectSame = (actual: Uint8Array, expected: Uint8Array) => expect(Buffer.compare(actual, expected)).toBe(0)
const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const linkHex = Buffer.from(link.bytes).toString('hex')

describe('encoding', () => {
  test('is byte for byte what cborg writes, and comes back the same', () => {
    for (let i = 0; i < 1000; i++) {
      const value = randomValue(3)
      const bytes = encode(value)
      expectSame(bytes, oracleEncode(value))
      expectSame(encode(decode(bytes)), bytes)
    }
  })

  test('takes the shortest head for every size of number', () => {
    for (let power = 0; power <= 53; power++) {
      for (const near of [-2, -1, 0, 1]) {
        for (const value of [2 ** power + near, -(2 ** power) + near]) {
          if (!Number.isSafeInteger(value)) continue
          expect(encode(value)).toEqual(oracleEncode(value))
          expect(decode(encode(value))).toBe(value)
        }
      }
    }
  })

  test('writes text and lists of every length class', () => {
    for (const length of [0, 23, 24, 255, 256, 65_535, 65_536, 200_000]) {
      for (const value of [
        'x'.repeat(length),
        'é'.repeat(length),
        Array<Data>(length).fill(7),
        new Uint8Array(length),
      ]) {
        const bytes = encode(value)
        expect(bytes).toEqual(oracleEncode(value))
        expect(decode(bytes)).toEqual(value)
      }
    }
  })

  test('orders keys by UTF-8 length and bytes, not as JavaScript does', () => {
    const map = { bb: 1, a: 2, é: 3, '💩': 4, '\uffee': 5, aa: 6, '10': 7, '9': 8 }
    expect(Object.keys(decode(encode(map)) as object).toSorted()).toEqual(Object.keys(map).toSorted())
    expect(encode(map)).toEqual(oracleEncode(map))
  })

  test('refuses what the data model does not have', () => {
    for (const bad of [
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 53,
      -(2 ** 53),
      undefined,
      1n,
      Symbol('x'),
      () => 1,
    ]) {
      expect(() => encode(bad as Data)).toThrow(TypeError)
      expect(() => encode({ bad: bad as Data })).toThrow(TypeError)
    }
  })

  test('does not let one large value keep its memory or disturb the next', () => {
    expect(encode(new Uint8Array(3_000_000)).length).toBe(3_000_005)
    expect(encode({ a: 1 })).toEqual(hex('a1 61 61 01'))
  })
})

describe('decoding', () => {
  test('gives values that the next one leaves as they are, be they small or large', () => {
    const values: Data[] = [1, 2, 70_000].map((size) => ({
      bytes: new Uint8Array(size).fill(size),
      link: cidOfBlob(new Uint8Array([size])),
    }))
    const decoded = values.map((value) => decode(encode(value)))
    expect(decoded).toEqual(values)
  })

  test('gives the value that was encoded, and shares no memory with its input', () => {
    const bytes = encode({ bytes: new Uint8Array([1, 2]), link })
    const value = decode(Buffer.from(bytes)) as { bytes: Uint8Array; link: Cid }
    const again = decode(bytes) as typeof value
    bytes.fill(0)
    expect(again.bytes).toEqual(new Uint8Array([1, 2]))
    expect(again.link.equals(link)).toBe(true)
  })

  test('keeps a byte order mark, and a key that names the prototype', () => {
    expect(decode(encode('\ufeffx'))).toBe('\ufeffx')
    const map = decode(encode(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'))) as DataObject
    expect(Object.keys(map)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(map)).toBe(Object.prototype)
    expect(map['polluted']).toBeUndefined()
    expect(encode(map)).toEqual(encode(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}')))
  })

  test('splits the first value from what follows it', () => {
    const bytes = new Uint8Array([...encode({ op: 1, t: '#info' }), ...encode({ name: 'x' })])
    const { value, rest } = decodeFirst(bytes)
    expect(value).toEqual({ op: 1, t: '#info' })
    expect(decode(rest)).toEqual({ name: 'x' })
    expect(() => decode(bytes)).toThrow(Malformed)
  })

  const malformed: [string, string][] = [
    ['nothing at all', ''],
    ['a head without its number', '18'],
    ['a head without all of its number', '1b 00 00 00 01'],
    ['a number that fits in the head', '18 17'],
    ['a number that fits in one byte', '19 00 ff'],
    ['a number that fits in two bytes', '1a 00 00 ff ff'],
    ['a number that fits in four bytes', '1b 00 00 00 00 ff ff ff ff'],
    ['a number beyond 53 bits', '1b 00 20 00 00 00 00 00 00'],
    ['a negative number beyond 53 bits', '3b 00 1f ff ff ff ff ff ff'],
    ['the largest 64-bit number', '1b ff ff ff ff ff ff ff ff'],
    ['a reserved head', '1c'],
    ['an indefinite byte string', '5f 41 00 ff'],
    ['an indefinite text', '7f 61 61 ff'],
    ['an indefinite list', '9f 01 ff'],
    ['an indefinite map', 'bf 61 61 01 ff'],
    ['a break alone', 'ff'],
    ['a half float', 'f9 3c 00'],
    ['a single float', 'fa 3f 80 00 00'],
    ['a double float', 'fb 3f f1 99 99 99 99 99 9a'],
    ['undefined', 'f7'],
    ['a simple value', 'e0'],
    ['false in two bytes', 'f8 14'],
    ['a byte string longer than its input', '42 01'],
    ['a text longer than its input', '62 61'],
    ['a text with a length in too many bytes', '78 01 61'],
    ['text that is not UTF-8', '62 c3 28'],
    ['an overlong UTF-8 slash', '62 c0 af'],
    ['a surrogate in UTF-8', '63 ed a0 80'],
    ['long text that is not UTF-8', `78 28 ${'61'.repeat(39)} ff`],
    ['a list longer than its input', '9a ff ff ff ff'],
    ['a list of 2^53 items', '9b 00 1f ff ff ff ff ff ff'],
    ['a map longer than its input', 'ba 7f ff ff ff'],
    ['a map that ends after its key', 'a1 61 61'],
    ['keys out of order', 'a2 61 62 01 61 61 02'],
    ['a long key before a short one', 'a2 62 61 61 01 61 62 02'],
    ['a key twice', 'a2 61 61 01 61 61 02'],
    ['a number as a key', 'a1 01 02'],
    ['bytes as a key', 'a1 41 61 02'],
    ['another tag', 'c0 61 61'],
    ['a tag in too many bytes', 'd9 00 2a 41 00'],
    ['a link that is text', `d8 2a 61 61 ${'00'.repeat(40)}`],
    ['a link without its zero byte', `d8 2a 58 25 01 ${linkHex}`],
    ['a link of another length', `d8 2a 58 26 00 ${linkHex} 00`],
    ['a link cut short', `d8 2a 58 25 00 ${linkHex.slice(0, -2)}`],
    ['a link to an unknown codec', `d8 2a 58 25 00 01 70 12 20 ${linkHex.slice(8)}`],
    ['a link by another hash', `d8 2a 58 25 00 01 71 13 20 ${linkHex.slice(8)}`],
    ['a link of version 0', `d8 2a 58 23 00 ${linkHex.slice(4)} 00 00`],
    ['a value after the value', '01 01'],
  ]
  for (const [what, bytes] of malformed) {
    test(`refuses ${what}`, () => expect(() => decode(hex(bytes))).toThrow(Malformed))
  }

  test('refuses nesting beyond its bound, and takes nesting up to it', () => {
    const nest = (levels: number, head: string) => hex(head.repeat(levels) + '80')
    expect(decode(nest(MAX_DEPTH_LEVELS - 1, '81'))).toBeArray()
    expect(() => decode(nest(MAX_DEPTH_LEVELS, '81'))).toThrow(Malformed)
    expect(() => decode(nest(MAX_DEPTH_LEVELS, 'a16161'))).toThrow(Malformed)
    expect(() => decode(nest(1_000_000, '81'))).toThrow(Malformed)
    const deepest = decode(nest(MAX_DEPTH_LEVELS - 1, '81'))
    expect(decode(encode(deepest))).toEqual(deepest)
    expect(() => encode([deepest])).toThrow(TypeError)
  })

  test('agrees with cborg on damaged input: what it accepts is canonical and equal', () => {
    for (let i = 0; i < 5000; i++) {
      const bytes = encode(randomMap(1))
      const changes = 1 + Math.floor(Math.random() * 2)
      for (let n = 0; n < changes; n++)
        bytes[Math.floor(Math.random() * bytes.length)] = Math.floor(Math.random() * 256)
      let value: Data
      try {
        value = decode(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed)
        continue
      }
      expectSame(encode(value), bytes)
      expectSame(encode(oracleDecode(bytes) as Data), bytes)
    }
  })

  test('decoding refuses every truncation', () => {
    const bytes = encode({ a: [1, 300, 'text', null, new Uint8Array(30)], link, long: 'x'.repeat(300), n: -70_000 })
    for (let length = 0; length < bytes.length; length++)
      expect(() => decode(bytes.subarray(0, length))).toThrow(Malformed)
  })
})
