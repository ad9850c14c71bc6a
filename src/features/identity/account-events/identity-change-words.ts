/** What a change of an identity that someone else has made is called. */
import { timeInWords } from '../../../base/time-words.ts'
import type { ForeignChange, IdentityPart } from '../../../protocol/plc-changes.ts'

const partWords: Readonly<Record<IdentityPart, string>> = {
  ended: 'the identity itself, which has ended',
  server: 'the server of the account',
  handle: 'the handle',
  'signing-key': 'the key that signs posts',
  'rotation-keys': 'the keys that may change the identity',
  other: 'other keys, services or names',
}

/** Returns what changed, such as `the handle, the server of the account`. */
export const changedWords = ({ parts }: ForeignChange): string =>
  parts.length === 0 ? 'nothing that still differs' : parts.map((part) => partWords[part]).join(', ')

/** Returns until when and by which keys the change can be undone. */
export const undoWords = ({ undoableBy, undoableUntil }: ForeignChange): string =>
  undoableBy.length === 0
    ? 'It was signed with the highest key of the identity, so no other key can undo it.'
    : `Until ${timeInWords(undoableUntil)}, a higher key of the identity can undo it: ${undoableBy.join(', ')}.`
