/** The text of a post: its limits, and the mentions, links and tags in it, at positions in bytes of UTF-8. */
import { OperatorError } from '../base/operator-error.ts'
import { withoutTrailing } from '../base/trailing.ts'
import { parseHandle } from '../protocol/identifiers.ts'

/** Source: the lexicon app.bsky.feed.post. */
const MAX_POST_GRAPHEMES = 300
const MAX_POST_BYTES = 3000
/** Source: the lexicon app.bsky.richtext.facet. */
const MAX_TAG_GRAPHEMES = 64
const MAX_TAG_BYTES = 640

const graphemes = new Intl.Segmenter()
const graphemesOf = (text: string): number => [...graphemes.segment(text)].length

/** The kind of a part of the text. A mention names a handle, which the caller has yet to resolve. */
export type Feature = { kind: 'mention'; handle: string } | { kind: 'link'; uri: string } | { kind: 'tag'; tag: string }

export interface Part {
  byteStart: number
  byteEnd: number
  feature: Feature
}

/** Throws OperatorError if the text is too long for a post, or is not well-formed Unicode. */
export function checkPostText(text: string): void {
  if (!text.isWellFormed()) throw new OperatorError('the text is not valid Unicode')
  const length = graphemesOf(text)
  if (length > MAX_POST_GRAPHEMES)
    throw new OperatorError(`the text has ${length} characters; a post takes ${MAX_POST_GRAPHEMES}`)
  if (Buffer.byteLength(text) > MAX_POST_BYTES)
    throw new OperatorError(`the text is longer than ${MAX_POST_BYTES} bytes`)
}

/** Each pattern captures the character before the part, and the part itself. */
const patterns: readonly [RegExp, (found: string) => { length: number; feature: Feature } | null][] = [
  [/(^|[\s(])(https?:\/\/\S+)/giu, link],
  [/(^|[\s(])(@[a-z\d.-]*[a-z\d])/giu, mention],
  [/(^|\s)([#＃][^\s\p{Cf}]+)/gu, tag],
]

/** Find the parts, in text order. Parts do not overlap. */
export function partsOf(text: string): Part[] {
  const parts: Part[] = []
  for (const [pattern, read] of patterns)
    for (const { index, 1: before = '', 2: found = '' } of text.matchAll(pattern)) {
      const part = read(found)
      if (part === null) continue
      const start = index + before.length
      const byteStart = Buffer.byteLength(text.slice(0, start))
      const byteEnd = byteStart + Buffer.byteLength(text.slice(start, start + part.length))
      if (parts.every((other) => other.byteEnd <= byteStart || byteEnd <= other.byteStart))
        parts.push({ byteStart, byteEnd, feature: part.feature })
    }
  return parts.sort((one, other) => one.byteStart - other.byteStart)
}

/** Punctuation at the end belongs to the sentence, and so does a closing bracket without an opening one in the link. */
function link(found: string) {
  let uri = withoutTrailing(found, (character) => `.,;:!?'"`.includes(character))
  if (uri.endsWith(')') && !uri.includes('(')) uri = uri.slice(0, -1)
  return URL.canParse(uri) ? { length: uri.length, feature: { kind: 'link', uri } as const } : null
}

function mention(found: string) {
  const handle = parseHandle(found.slice(1).toLowerCase())
  return handle === null ? null : { length: found.length, feature: { kind: 'mention', handle } as const }
}

/** A number is not a tag, and neither is the keycap emoji that begins with `#`. */
function tag(found: string) {
  const name = withoutTrailing(found.slice(1), (character) => /\p{P}/u.test(character))
  if (!/[^\d\p{P}]/u.test(name) || name.startsWith('\ufe0f')) return null
  if (Buffer.byteLength(name) > MAX_TAG_BYTES || graphemesOf(name) > MAX_TAG_GRAPHEMES) return null
  return { length: name.length + 1, feature: { kind: 'tag', tag: name } as const }
}
