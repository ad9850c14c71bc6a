/** Words for a change of an identity that someone else made. */
import { timeInWords } from '../../../base/time-words.ts'
import type { Phrase } from '../../../http/html.ts'
import { listPhrase, timePhrase } from '../../../http/texts.ts'
import type { ForeignChange, IdentityPart } from '../../../protocol/plc-changes.ts'
import { noticeTexts as texts } from './notice-texts.ts'

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

/** Returns, in words, until when and with which keys the change can be undone. */
export const undoWords = ({ undoableBy, undoableUntil }: ForeignChange): string =>
  undoableBy.length === 0
    ? 'It was signed with the highest key of the identity, so no other key can undo it.'
    : `Until ${timeInWords(undoableUntil)}, a higher key of the identity can undo it: ${undoableBy.join(', ')}.`

const partTexts: Readonly<Record<IdentityPart, Phrase>> = {
  ended: texts.partEnded,
  server: texts.partServer,
  handle: texts.partHandle,
  'signing-key': texts.partSigningKey,
  'rotation-keys': texts.partRotationKeys,
  other: texts.partOther,
}

/** Returns what a mail to the holder says about a change. */
export const changedElsewhere = ({ parts, undoableBy, undoableUntil }: ForeignChange): Phrase =>
  texts.changedElsewhereParts({
    parts: parts.length === 0 ? texts.partNone : listPhrase(parts.map((part) => partTexts[part])),
    undo:
      undoableBy.length === 0
        ? texts.undoNone
        : texts.undoBy({ time: timePhrase(undoableUntil), keys: listPhrase(undoableBy) }),
  })
