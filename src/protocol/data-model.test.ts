import { describe, expect, test } from 'bun:test'
import { jsonToLex, lexToIpld } from '@atproto/lexicon'
import { cidForRecord } from '@atproto/repo'
import fixtures from '../../tests/vectors/interop/data-model/data-model-fixtures.json'
import invalid from '../../tests/vectors/interop/data-model/data-model-invalid.json'
import valid from '../../tests/vectors/interop/data-model/data-model-valid.json'
import { decode, encode, MAX_DEPTH_LEVELS, type Data } from './cbor.ts'
import { cidOfBlob, cidOfCbor } from './cid.ts'
import { dataToJson, findBlobs, jsonToData, jsonToObject, type Json } from './data-model.ts'
import { validateRecord } from './lexicons/lexicons.ts'
import { Malformed } from './malformed.ts'

const rawCid = cidOfBlob(new Uint8Array([1]))
const cborCid = cidOfCbor(new Uint8Array([1]))
const link = { $link: cborCid.toString() }
const blob = { $type: 'blob', ref: { $link: rawCid.toString() }, mimeType: 'image/png', size: 3 }

describe('interop vectors', () => {
  for (const fixture of fixtures) {
    test(`fixture ${fixture.cid} has its bytes and CID, and comes back`, () => {
      const bytes = encode(jsonToObject(fixture.json))
      expect(Buffer.from(bytes)).toEqual(Buffer.from(fixture.cbor_base64, 'base64'))
      expect(cidOfCbor(bytes).toString()).toBe(fixture.cid)
      expect(dataToJson(decode(bytes))).toEqual(fixture.json as unknown as Json)
    })
  }
  for (const { note, json } of valid) {
    test(`takes: ${note}`, () =>
      expect(dataToJson(decode(encode(jsonToObject(json))))).toEqual(json as unknown as Json))
  }
  for (const { note, json } of invalid) {
    test(`refuses: ${note}`, () => expect(() => jsonToObject(json)).toThrow(Malformed))
  }
})

describe('JSON that would not come back the same is refused', () => {
  const refused: [string, unknown][] = [
    ['a fraction', 1.5],
    ['an unsafe integer', 2 ** 53],
    ['infinity', Number.POSITIVE_INFINITY],
    ['undefined', { a: undefined }],
    ['a $link with its key inherited from JSON', { $link: link.$link, __extra: 1 }],
    ['a $link of the old version', { $link: 'QmbWqxBEKC3P8tqsKc98xmWNzrzDtRLMiMPL8wBuTGsMnR' }],
    ['a null $link', { $link: null }],
    ['both at once', { $link: link.$link, $bytes: 'AAAA' }],
    ['url-safe base64', { $bytes: '-_-_' }],
    ['base64 with one digit left over', { $bytes: 'AAAAA' }],
    ['base64 with too much padding', { $bytes: 'AAAA====' }],
    ['base64 with a short padding', { $bytes: 'AA=' }],
    ['base64 with junk after its padding', { $bytes: 'AA==AA' }],
    ['base64 with white space', { $bytes: 'AA AA' }],
    ['a blob without a link', { ...blob, ref: rawCid.toString() }],
    ['a blob whose link is no raw CID', { ...blob, ref: link }],
    ['a blob of negative size', { ...blob, size: -1 }],
    ['a blob of an empty type', { ...blob, mimeType: '' }],
    ['a blob with another key', { ...blob, alt: 'x' }],
  ]
  for (const [what, json] of refused) test(what, () => expect(() => jsonToData({ a: [json] })).toThrow(Malformed))

  test('nesting beyond the bound', () => {
    const nest = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown
    expect(encode(jsonToData(nest(MAX_DEPTH_LEVELS)))).toHaveLength(MAX_DEPTH_LEVELS)
    expect(() => jsonToData(nest(MAX_DEPTH_LEVELS + 1))).toThrow(Malformed)
    expect(() => jsonToData(nest(100_000))).toThrow(Malformed)
  })

  test('a top that is no object, for a record', () => {
    for (const top of [null, 1, 'x', [], link, { $bytes: '' }]) expect(() => jsonToObject(top)).toThrow(Malformed)
  })
})

test('a key that names the prototype is refused in JSON, and in a block it is data like any other', () => {
  const json = JSON.parse('{"b":{"__proto__":2},"__proto__":{"a":1}}') as Json
  expect(() => jsonToData(json)).toThrow('Invalid key: __proto__')
  const back = dataToJson(decode(encode(json as Data)))
  expect(JSON.stringify(back)).toBe(JSON.stringify(json))
  expect(({} as { a?: number }).a).toBeUndefined()
})

test('bytes are written without padding and read with or without it', () => {
  for (let length = 0; length < 6; length++) {
    const bytes = new Uint8Array(length).fill(251)
    const json = dataToJson(bytes) as { $bytes: string }
    expect(json.$bytes).not.toContain('=')
    expect(jsonToData(json)).toEqual(bytes)
    expect(jsonToData({ $bytes: Buffer.from(bytes).toString('base64') })).toEqual(bytes)
  }
})

describe('beside the lexicons', () => {
  const profile = {
    $type: 'app.bsky.actor.profile',
    avatar: { ...blob, mimeType: 'image/png' },
    more: { deep: blob, link, bytes: { $bytes: 'AAAA' } },
  }

  test('a converted record is validated as it is, and encoded as the library would', async () => {
    const data = jsonToObject(profile)
    expect(validateRecord('app.bsky.actor.profile', data)).toEqual({ status: 'valid' })
    expect(cidOfCbor(encode(data)).toString()).toBe(String(await cidForRecord(lexToIpld(jsonToLex(profile)) as never)))
    expect(dataToJson(data)).toEqual(profile)
  })

  test('validation still refuses the wrong kinds', () => {
    for (const avatar of [
      link,
      { $bytes: '' },
      { cid: rawCid.toString(), mimeType: 'image/png' },
      { ref: link },
      'x',
    ]) {
      expect(validateRecord('app.bsky.actor.profile', jsonToObject({ ...profile, avatar }))).toMatchObject({
        status: 'invalid',
      })
    }
  })
})

describe('blobs of a value', () => {
  test('are found at any depth, in lists and objects, from JSON and from stored bytes', () => {
    const json = {
      a: blob,
      b: [{ c: [blob] }],
      d: { cid: rawCid.toString(), mimeType: 'image/png' },
      e: { $type: 'blobs' },
    }
    for (const data of [jsonToData(json), decode(encode(jsonToData(json)))]) {
      const { blobs, legacy } = findBlobs(data)
      expect(blobs.map((found) => [found.ref.toString(), found.mimeType, found.size])).toEqual([
        [rawCid.toString(), 'image/png', 3],
        [rawCid.toString(), 'image/png', 3],
      ])
      expect(legacy).toEqual([rawCid.toString()])
    }
  })

  test('are not seen in what only looks like one', () => {
    const lookalikes: Data = [
      { cid: 'not a cid', mimeType: 'image/png' },
      { cid: rawCid.toString(), mimeType: 'image/png', more: 1 },
      { cid: rawCid.toString() },
      'blob',
      cborCid,
      new Uint8Array([1]),
    ]
    expect(findBlobs(lookalikes)).toEqual({ blobs: [], legacy: [] })
  })
})
