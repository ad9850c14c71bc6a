import { describe, expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/shamir-share-v2.json' with { type: 'json' }
import { formatShare, parseShare, readShare, shareEnvelope, type ShareIndex } from './escrow-share.ts'

const shares = vectors.sets.flatMap(({ label, setId, shares }) =>
  shares.map((share) => ({ name: `set ${label}, share ${share.index}`, setId, ...share })),
)

describe('the published shares', () => {
  test.each(shares)('$name', ({ setId, index, payloadHex, envelopeHex, base32 }) => {
    const bytes = new Uint8Array(Buffer.from(envelopeHex, 'hex'))
    const payload = new Uint8Array(Buffer.from(payloadHex, 'hex'))
    expect(parseShare(base32)).toEqual({ ok: true, share: { setId, index: index as ShareIndex, payload, bytes } })
    expect(shareEnvelope({ setId, index: index as ShareIndex, payload }).bytes).toEqual(bytes)
    expect(formatShare(bytes)).toBe(base32)
  })

  test.each(vectors.decodeTolerant)('tolerated: $name', ({ input, sameAs }) => {
    const outcome = parseShare(input)
    expect(outcome.ok && formatShare(outcome.share.bytes)).toBe(shares.find(({ name }) => name === sameAs)!.base32)
  })

  test.each(vectors.reject)('refused: $name', ({ name, kind, base32 }) => {
    expect(parseShare(base32)).toEqual({ ok: false, fault: name.startsWith('index-') ? 'index' : (kind as 'format') })
  })

  // Valid shares. That escrow takes none but share 2 is the server's rule.
  test.each(vectors.wrongIndexForEscrow)('its index is told: $name', ({ name, base32 }) => {
    expect(parseShare(base32)).toMatchObject({ ok: true, share: { index: Number(name.at(-1)) } })
  })
})

test('a share has one spelling but for case and white space', () => {
  const { base32 } = shares[1]!
  expect(base32.at(-1)).toBe('A')
  const last = base32.slice(0, -1)
  // The last character carries one bit. All others that share this bit have unused bits that are not zero.
  for (const letter of 'BCDEFGHIJKLMNOP') expect(parseShare(last + letter)).toEqual({ ok: false, fault: 'format' })
  for (const text of [
    base32.replaceAll('I', 'ı'),
    base32.replaceAll('S', 'ſ'),
    `${base32}=`,
    `B${base32}`,
    `${base32}\0`,
    base32.slice(1),
  ])
    expect(parseShare(text)).toEqual({ ok: false, fault: 'format' })
})

test('every flipped bit of an envelope is a fault', () => {
  const bytes = Buffer.from(shares[1]!.envelopeHex, 'hex')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const mutated = new Uint8Array(bytes)
    mutated[bit >> 3]! ^= 1 << (bit & 7)
    expect(readShare(mutated).ok).toBe(false)
  }
})
