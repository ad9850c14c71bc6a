import { expect, test } from 'bun:test'
import { Random } from '../../../tests/support/random.ts'
import vectors from '../../../tests/vectors/contract/push-padding.json' with { type: 'json' }
import { paddedPlaintext, relayedBody, type PushMessage } from './push-message.ts'

const buckets = [1024, 2048, 3584]
const TAG_BYTES = 16

/** The body of a push whose plaintext is `plaintext`, with any ciphertext of that length. */
const bodyOf = (plaintext: Uint8Array, kid: number): string =>
  relayedBody({
    kid,
    enc: 'x'.repeat(87),
    ct: Buffer.alloc(plaintext.byteLength + TAG_BYTES, 0xff).toString('base64url'),
  })

const textOf = (plaintext: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(plaintext)
const padOf = (plaintext: Uint8Array): string => (JSON.parse(textOf(plaintext)) as { pad: string }).pad
const unpadded = (message: PushMessage): Uint8Array => Buffer.from(JSON.stringify({ ...message, pad: '' }))

type Text = string | { repeat: string; times: number }
const spelledOut = (text: Text): string => (typeof text === 'string' ? text : text.repeat.repeat(text.times))

test.each(vectors.cases)(
  'the published case: $label',
  ({ kid, payloadWithoutPad: { type, title, body }, ...expected }) => {
    const message = { type, title, body: spelledOut(body) }
    expect(unpadded(message).byteLength).toBe(expected.unpaddedPlaintextLen)
    expect(bodyOf(unpadded(message), kid).length).toBe(expected.unpaddedSerializedLen)
    const padded = paddedPlaintext(message, kid)
    expect(padded && padOf(padded).length).toBe(expected.pad)
    expect(padded === null ? undefined : bodyOf(padded, kid).length).toBe(expected.sealedSerializedLen)
  },
)

test('the published rule is the one that is used', () => {
  expect(vectors.buckets).toEqual(buckets)
  expect(relayedBody({ kid: 7, enc: 'E', ct: 'C' })).toBe(
    vectors.envelopeTemplate.replace('<kid>', '7').replace('<enc>', 'E').replace('<ct>', 'C'),
  )
  for (const [bucket, chars] of Object.entries(vectors.maxAsciiBodyCharsPerBucketForTypeTestTitleT)) {
    const lengthWith = (count: number) => {
      const padded = paddedPlaintext({ type: 'test', title: 't', body: 'x'.repeat(count) }, 1)
      return padded && bodyOf(padded, 1).length
    }
    expect(lengthWith(chars)).toBe(Number(bucket))
    expect(lengthWith(chars + 1) ?? 'dropped').not.toBe(Number(bucket))
  }
})

test('members stand in their order, and data only if there is some', () => {
  const text = (message: PushMessage) => textOf(paddedPlaintext(message, 1)!).replace(/ +"}$/, '"}')
  const data = { requestId: 'r', origin: null }
  expect(text({ data, body: 'b', title: 't', type: 'k' })).toBe(
    '{"type":"k","title":"t","body":"b","data":{"requestId":"r","origin":null},"pad":""}',
  )
  for (const message of [
    { type: 'k', title: 't', body: 'b' },
    { type: 'k', title: 't', body: 'b', data: {} },
  ])
    expect(text(message)).toBe('{"type":"k","title":"t","body":"b","pad":""}')
})

/** Checks everything that is promised of a padded plaintext. Returns its bucket; null if the message was refused. */
function checked(message: PushMessage, kid: number): number | null {
  const least = bodyOf(unpadded(message), kid).length
  const bucket = buckets.find((bytes) => bytes >= least) ?? null
  const padded = paddedPlaintext(message, kid)
  expect(padded === null).toBe(bucket === null)
  if (padded === null || bucket === null) return null
  const pad = padOf(padded)
  expect(JSON.parse(textOf(padded))).toEqual({ ...message, pad })
  expect(pad).toBe(' '.repeat(pad.length))
  const length = bodyOf(padded, kid).length
  expect([bucket, bucket - 1]).toContain(length)
  // No space more fits.
  expect(bodyOf(new Uint8Array(padded.byteLength + 1), kid).length).toBeGreaterThan(bucket)
  return bucket
}

const kids = [1, 9, 10, 99, 100, 12_345, 4_294_967_295]
const pieces = ['x', '"', '\\', '\n', '\u0000', 'ż', '本', '🔑', '\u2028', '</a>']

test.each(kids)(
  'around the edge of every bucket the length is that of the bucket, or one byte less (key %i)',
  (kid) => {
    for (const bucketBytes of buckets) {
      const largest = Array.from({ length: bucketBytes }, (_, count) => count).findLast(
        (count) => bodyOf(unpadded({ type: 'k', title: 't', body: 'x'.repeat(count) }), kid).length <= bucketBytes,
      )!
      for (let count = largest - 8; count <= largest + 8; count++) {
        const bucket = checked({ type: 'k', title: 't', body: 'x'.repeat(count) }, kid)
        if (count <= largest) expect(bucket).toBe(bucketBytes)
        else expect(bucket ?? Infinity).toBeGreaterThan(bucketBytes)
      }
    }
  },
)

test.each([1, 2, 3, 4])('any text is padded by its bytes as they are written (seed %i)', (seed) => {
  const random = new Random(seed)
  const text = (pieceCount: number) => Array.from({ length: pieceCount }, () => random.of(pieces)).join('')
  for (let round = 0; round < 150; round++) {
    const message = {
      type: 'k',
      title: text(random.below(40)),
      body: text(random.below(900)),
      data: { id: text(1 + random.below(30)) },
    }
    checked(message, random.of(kids))
  }
})

test('half of a surrogate pair does not make the text malformed', () => {
  expect(JSON.parse(textOf(paddedPlaintext({ type: 'k', title: '\ud83d', body: 'b' }, 1)!))).toMatchObject({
    title: '\ud83d',
  })
})
