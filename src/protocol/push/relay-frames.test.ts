import { expect, test } from 'bun:test'
import { Random } from '../../../tests/support/random.ts'
import vectors from '../../../tests/vectors/contract/push-relay-frames.json' with { type: 'json' }
import {
  formatRelayRequest,
  MAX_FRAME_BYTES,
  pushOutcomes,
  readRelayAnswer,
  RELAY_ALPN,
  type RelayRequest,
} from './relay-frames.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('the protocol is the published one', () => {
  expect({ alpn: RELAY_ALPN, maxMessageBytes: MAX_FRAME_BYTES }).toMatchObject({
    alpn: vectors.alpn,
    maxMessageBytes: vectors.maxMessageBytes,
  })
})

test.each(vectors.requests)('the published request: $name', ({ json, hex }) => {
  const request = JSON.parse(json) as RelayRequest
  expect(Buffer.from(formatRelayRequest(request)).toString('hex')).toBe(hex)
})

test.each(vectors.responses)('the published answer: $name', ({ json, hex }) => {
  const expected = { ok: true, answer: JSON.parse(json) }
  expect(readRelayAnswer(Buffer.from(hex, 'hex')) as unknown).toEqual(expected)
})

test('every outcome of a push is published', () => {
  const published = vectors.responses.flatMap(({ json }) => (JSON.parse(json) as { outcome?: string }).outcome ?? [])
  expect(published.toSorted()).toEqual(pushOutcomes.toSorted())
})

const HANDLE = 'wPaEUCGbsPDUro7ihqEDug'

test('what a later relay adds to an answer is ignored', () => {
  expect(readRelayAnswer(bytes(`{"type":"handle","handle":"${HANDLE}","expires":5}`))).toEqual({
    ok: true,
    answer: { type: 'handle', handle: HANDLE },
  })
})

const malformed = [
  '',
  ' ',
  '{"type":"ok"',
  '{"type":"ok"}{"type":"ok"}',
  '\ufeff{"type":"ok"}',
  'null',
  '[]',
  '"ok"',
  '{}',
  '{"type":null}',
  '{"type":["ok"]}',
  '{"type":"OK"}',
  '{"type":"constructor"}',
  '{"type":"__proto__"}',
  '{"type":"handle"}',
  '{"type":"handle","handle":""}',
  `{"type":"handle","handle":"${HANDLE}A"}`,
  `{"type":"handle","handle":"${HANDLE.slice(1)}="}`,
  '{"type":"handle","handle":7}',
  '{"type":"pushed"}',
  '{"type":"pushed","outcome":"sent"}',
  '{"type":"pushed","outcome":"toString"}',
  '{"type":"badRequest"}',
  '{"type":"badRequest","reason":{}}',
]
test.each(malformed)('%s is no answer', (text) => {
  expect(readRelayAnswer(bytes(text)).ok).toBe(false)
})

test('bytes that are no text are no answer', () => {
  expect(
    readRelayAnswer(Buffer.concat([bytes('{"type":"badRequest","reason":"'), Buffer.from([0xff]), bytes('"}')])).ok,
  ).toBe(false)
})

test('of what is no answer, nothing but its shape is told', () => {
  const secret = 'a secret'
  for (const text of [
    secret,
    `["${secret}"]`,
    `{"type":"${secret}"}`,
    `{"type":"pushed","outcome":"${secret}"}`,
    `{"${secret}":1}`,
  ]) {
    const read = readRelayAnswer(bytes(text))
    expect(read).toMatchObject({ ok: false, shape: expect.any(String) })
    expect(JSON.stringify(read)).not.toContain(secret)
  }
})

test('an answer with any change is another answer, or none', () => {
  const random = new Random(4)
  const answers = vectors.responses.map(({ json }) => json)
  for (let round = 0; round < 2000; round++) {
    const changed = Buffer.from(random.of(answers))
    changed[random.below(changed.length)] = random.below(256)
    const read = readRelayAnswer(changed)
    if (read.ok) expect(Object.keys(read.answer).length).toBeLessThanOrEqual(2)
    else expect(read.shape).toMatch(/^[a-zA-Z0-9 ]+$/)
  }
})
