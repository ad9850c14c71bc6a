import { expect, test } from 'bun:test'
import { blake3 } from '@noble/hashes/blake3'
import { Random } from '../../tests/support/random.ts'
import { blake3Words, MAX_INPUT_BYTES } from './blake3.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const hexOfWords = (words: Int32Array): string => hex(new Uint8Array(words.buffer, words.byteOffset, words.byteLength))

test('inputs of every length are expanded as the library expands them', () => {
  const random = new Random(1604)
  const input = Uint8Array.from({ length: MAX_INPUT_BYTES }, () => random.below(256))
  for (let length = 0; length <= MAX_INPUT_BYTES; length++) {
    const words = length % 8 === 0 ? 512 : 20
    const some = input.subarray(0, length)
    expect([length, hexOfWords(blake3Words(some, words))]).toEqual([length, hex(blake3(some, { dkLen: 4 * words }))])
  }
})

test('an input of more than a chunk is a bug of the caller', () => {
  expect(() => blake3Words(new Uint8Array(MAX_INPUT_BYTES + 1), 8)).toThrow(TypeError)
})
