/** Small changes of texts and values, as a careless or hostile sender makes them. */
import type { Random } from './random.ts'

const changes: Readonly<Record<string, (text: string, at: number, random: Random, letters: string) => string>> = {
  replaced: (text, at, random, letters) =>
    text.slice(0, at) + letters[random.below(letters.length)] + text.slice(at + 1),
  added: (text, at, random, letters) => text.slice(0, at) + letters[random.below(letters.length)] + text.slice(at),
  missing: (text, at) => text.slice(0, at) + text.slice(at + 1),
  'cut off': (text, at) => text.slice(0, at),
  repeated: (text, at, random) => text.slice(0, at) + text.slice(Math.max(0, at - random.below(24))),
}
const kinds = Object.keys(changes)

/** The text with one change, of a character from `letters` or of a part. It may come out the same. */
export const mutated = (text: string, random: Random, letters: string): string =>
  changes[random.of(kinds)]!(text, random.below(text.length + 1), random, letters)

/** The bytes with one bit changed. */
export function flipped(bytes: Uint8Array, random: Random): Uint8Array {
  const copy = new Uint8Array(bytes)
  const bit = random.below(copy.length * 8)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}
