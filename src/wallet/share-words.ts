/** Shares as words, for writing on paper: one word for each byte of the envelope. */
import { parseShare, readShare, type ShareOutcome } from '../protocol/escrow-share.ts'
import { shareWordList } from './share-word-list.ts'

const byteOf = new Map(shareWordList.map((word, byte) => [word, byte]))

export const shareWords = (bytes: Uint8Array): string => [...bytes].map((byte) => shareWordList[byte]!).join(' ')

export type TypedShare = ShareOutcome | { ok: false; fault: 'word'; word: string }

/**
 * Reads typed input: words, or the text in base32. Ignores case, white space, and numbers with a dot before a word. The
 * fault `word` names the first word that is not in the list.
 */
export function readTypedShare(text: string): TypedShare {
  const base32 = parseShare(text)
  const words = text
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => !/^\d+[.:)]?$/.test(word))
  // The text is taken for words if any part of it is in the word list. Base32 may be typed in groups too, but a group
  // is rarely a word of the list.
  if (base32.ok || !words.some((word) => byteOf.has(word))) return base32
  const unknown = words.find((word) => !byteOf.has(word))
  if (unknown !== undefined) return { ok: false, fault: 'word', word: unknown }
  return readShare(Uint8Array.from(words, (word) => byteOf.get(word)!))
}
