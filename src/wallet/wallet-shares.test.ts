import { createHash } from 'node:crypto'
import { describe, expect, test } from 'bun:test'
import derivation from '../../tests/vectors/contract/recovery-key-derivation-v1.json' with { type: 'json' }
import shamir from '../../tests/vectors/contract/shamir-share-v2.json' with { type: 'json' }
import wordList from '../../tests/vectors/contract/share-wordlist-v1.json' with { type: 'json' }
import { formatShare, parseShare, type EscrowShare } from '../protocol/escrow-share.ts'
import { formatDidKey, type SigningKey } from '../protocol/keys.ts'
import { newShares, recoveryKeyOf } from './recovery-seed.ts'
import { combineShares, splitSecret } from './shamir.ts'
import { readTypedShare, shareWords } from './share-words.ts'
import { shareWordList } from './share-word-list.ts'

const didKeyOf = (key: SigningKey): string => formatDidKey(key.publicKey)
const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))

function share(base32: string): EscrowShare {
  const outcome = parseShare(base32)
  if (!outcome.ok) throw new Error(outcome.fault)
  return outcome.share
}

describe.each(shamir.sets)('the published set $label', ({ secretHex, coefficientsHex, setId, shares, recoveryKey }) => {
  test('is what its secret splits into', () => {
    const { keychain, escrow, paper } = splitSecret(bytesOf(secretHex), bytesOf(coefficientsHex), setId)
    expect([keychain, escrow, paper].map(({ bytes }) => Buffer.from(bytes).toString('hex'))).toEqual(
      shares.map(({ envelopeHex }) => envelopeHex),
    )
  })

  test('is restored from any two, in either order', () => {
    const [one, two, three] = shares.map(({ base32 }) => share(base32)) as [EscrowShare, EscrowShare, EscrowShare]
    for (const [a, b] of [
      [one, two],
      [two, one],
      [one, three],
      [three, one],
      [two, three],
      [three, two],
    ] as const)
      expect(combineShares(a, b)).toEqual({ ok: true, secret: bytesOf(secretHex) })
  })

  test('has these words, and this recovery key', () => {
    for (const { base32, words, envelopeHex } of shares) {
      const bytes = bytesOf(envelopeHex)
      expect({ words: shareWords(bytes), base32: formatShare(bytes) }).toEqual({ words, base32 })
      for (const typed of [
        words,
        words.toUpperCase(),
        `\n ${words.replaceAll(' ', '\n')} `,
        words
          .split(' ')
          .map((word, i) => `${i + 1}. ${word}`)
          .join(' '),
        base32,
      ])
        expect(readTypedShare(typed)).toEqual(parseShare(base32))
    }
    expect(didKeyOf(recoveryKeyOf(bytesOf(secretHex)))).toBe(recoveryKey.didKey)
  })
})

test.each(derivation.cases)('the recovery key of $seedHex', ({ seedHex, didKey }) => {
  expect(didKeyOf(recoveryKeyOf(bytesOf(seedHex)))).toBe(didKey)
})

test.each(shamir.combineRefused)('not combined: $name', ({ name, a, b }) => {
  expect(combineShares(share(a), share(b))).toEqual({
    ok: false,
    fault: name === 'different-set' ? 'different-sets' : 'same-share',
  })
})

test('the list of words is the published one', () => {
  expect(shareWordList).toEqual(wordList.words)
  const digest = createHash('sha256')
    .update(shareWordList.map((word) => `${word}\n`).join(''))
    .digest('hex')
  expect(digest).toBe(wordList.digestOfWordsEachFollowedByLf)
  expect(new Set(shareWordList).size).toBe(256)
})

test('a word that is unknown, missing or exchanged is told', () => {
  const words = shamir.sets[0]!.shares[2]!.words.split(' ')
  expect(readTypedShare(words.with(7, 'quux').join(' '))).toEqual({ ok: false, fault: 'word', word: 'quux' })
  expect(readTypedShare(words.slice(1).join(' '))).toEqual({ ok: false, fault: 'format' })
  expect(readTypedShare(words.with(7, 'able').join(' '))).toEqual({ ok: false, fault: 'checksum' })
  for (const nothing of ['', '  ', 'quux', '1. 2.'])
    expect(readTypedShare(nothing)).toEqual({ ok: false, fault: 'format' })
})

test('two of three new shares restore the key, and no two splits are alike', () => {
  const made = newShares()
  for (const [a, b] of [
    [made.keychain, made.escrow],
    [made.escrow, made.paper],
    [made.keychain, made.paper],
  ] as const) {
    const outcome = combineShares(share(a), share(b))
    expect(outcome.ok && didKeyOf(recoveryKeyOf(outcome.secret))).toBe(made.recoveryKey)
  }
  const other = newShares()
  expect(combineShares(share(made.keychain), share(other.escrow))).toEqual({ ok: false, fault: 'different-sets' })
  expect(other.recoveryKey).not.toBe(made.recoveryKey)
})

test('every secret byte is restored', () => {
  for (let start = 0; start < 256; start += 32) {
    const secret = Uint8Array.from({ length: 32 }, (_, i) => start + i)
    const slopes = secret.map((byte) => 255 - byte)
    const { keychain, paper } = splitSecret(secret, slopes, 1)
    expect(combineShares(paper, keychain)).toEqual({ ok: true, secret })
  }
})
