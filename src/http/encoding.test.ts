import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { until } from '../../tests/support/until.ts'
import { chosenCoding, CodingRoom, encoded, knownTag, weakEtag, WholeResponse } from './encoding.ts'

test.each([
  [null, null],
  ['', null],
  ['identity', null],
  ['gzip', 'gzip'],
  ['gzip, br', 'gzip'],
  ['gzip;q=0.5, br', 'br'],
  ['gzip;q=0.8, br;q=0.1', 'gzip'],
  ['*', 'gzip'],
  ['*;q=0', null],
  ['br;q=0, *;q=0.5', 'gzip'],
  ['identity, gzip;q=0.5', null],
  ['compress', null],
  ['gzip;q=nonsense', null],
])('Accept-Encoding %p chooses %p', (header, coding) => {
  expect(chosenCoding(header)).toBe(coding)
})

test('validators compare weakly', () => {
  const etag = weakEtag('{"a":1}')
  expect(knownTag(etag, etag)).toBe(etag)
  expect(knownTag(`"other", ${etag.replace('W/', '')}`, etag)).toBe(etag.replace('W/', ''))
  expect(knownTag('*', etag)).toBe(etag)
  expect(knownTag('"other"', etag)).toBeNull()
  expect(knownTag(null, etag)).toBeNull()
  expect(knownTag('"other-gzip", "content-br"', '"content"')).toBe('"content-br"')
  expect(knownTag('W/"content-gzip"', '"content"')).toBe('W/"content-gzip"')
  expect(knownTag('"content-zip"', '"content"')).toBeNull()
})

/** What coding does not make shorter by much. */
const text = randomBytes(200_000).toString('base64')
const asked = (method = 'GET') => new Request('http://localhost/', { method, headers: { 'accept-encoding': 'gzip' } })
const response = () => new Response(text, { headers: { 'content-type': 'application/json' } })
const codingOf = ({ headers }: Response) => headers.get('content-encoding')

test('responses that nobody takes are coded up to a number, and again once their clients are gone', async () => {
  const room = new CodingRoom()
  const coded: Response[] = []
  for (
    let next = encoded(room, asked(), response());
    codingOf(next) === 'gzip';
    next = encoded(room, asked(), response())
  )
    coded.push(next)
  expect(coded).toHaveLength(128)
  const [taken, ...left] = coded
  expect(gunzipSync(await taken!.bytes()).toString()).toBe(text)
  for (const one of left.slice(1)) await one.body!.cancel()
  await until(() => !room.isFull)
  for (let i = 0; i < 3; i++) {
    const again = encoded(room, asked(), response())
    expect([codingOf(again), gunzipSync(await again.bytes()).toString() === text]).toEqual(['gzip', true])
  }
})

test('the headers of a coded response alone take no room', () => {
  const room = new CodingRoom()
  for (let i = 0; i < 200; i++) expect(codingOf(encoded(room, asked('HEAD'), response()))).toBe('gzip')
  expect(room.isFull).toBe(false)
})

test('a short body in memory is coded at once, without room, with the headers of its response', async () => {
  const room = new CodingRoom()
  const short = text.slice(0, 250_000)
  const init = { status: 201, headers: { 'content-type': 'application/json', etag: '"a"', 'set-cookie': 'a=b' } }
  for (const whole of [short, new TextEncoder().encode(short)])
    for (let i = 0; i < 200; i++) {
      const coded = encoded(room, asked(), new WholeResponse(whole, init))
      expect([coded.status, coded.headers.get('etag'), coded.headers.get('set-cookie')]).toEqual([
        201,
        '"a-gzip"',
        'a=b',
      ])
      expect([codingOf(coded), coded.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding'])
      if (i === 0) expect(gunzipSync(await coded.bytes()).toString()).toBe(short)
    }
  expect(room.isFull).toBe(false)
  expect(codingOf(encoded(room, asked(), new WholeResponse(text.slice(0, 1000), init)))).toBeNull()
  const long = encoded(room, asked(), new WholeResponse(text, init))
  expect(gunzipSync(await long.bytes()).toString()).toBe(text)
})
