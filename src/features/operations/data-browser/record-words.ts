/** Describes a record in words. Other people wrote its values. */
import { plainName, type Wording } from '../../../http/html.ts'
import { dataTexts as texts } from './data-texts.ts'

export interface RecordWords {
  what: Wording
  /** The text or name of the record; null if it has none. */
  text: string | null
}

type Value = Readonly<Record<string, unknown>>

const MAX_CHARS = 200

const textIn = (value: Value, ...names: readonly string[]): string | null => {
  for (const name of names) {
    const member = value[name]
    if (typeof member === 'string' && member.trim() !== '') return plainName(member, MAX_CHARS)
  }
  return null
}

/** Returns a DID, or the URI of a strong reference. */
function subjectOf(value: Value, name = 'subject'): string {
  const subject = value[name]
  const found = typeof subject === 'object' && subject !== null ? (subject as Value)['uri'] : subject
  return typeof found === 'string' ? plainName(found, MAX_CHARS) : '?'
}

const about =
  (phrase: (values: { subject: string }) => Wording, name?: string) =>
  (value: Value): RecordWords => ({ what: phrase({ subject: subjectOf(value, name) }), text: null })

const named =
  (what: Wording, ...names: readonly string[]) =>
  (value: Value): RecordWords => ({ what, text: textIn(value, ...names) })

const kinds: Readonly<Record<string, (value: Value) => RecordWords>> = {
  'app.bsky.feed.post': (value) => ({
    what: value['reply'] === undefined ? texts.post : texts.reply,
    text: textIn(value, 'text'),
  }),
  'app.bsky.feed.like': about(texts.like),
  'app.bsky.feed.repost': about(texts.repost),
  'app.bsky.feed.generator': named(texts.feed, 'displayName', 'description'),
  'app.bsky.feed.threadgate': named(texts.threadgate, 'post'),
  'app.bsky.feed.postgate': named(texts.postgate, 'post'),
  'app.bsky.graph.follow': about(texts.follow),
  'app.bsky.graph.block': about(texts.block),
  'app.bsky.graph.list': named(texts.list, 'name', 'description'),
  'app.bsky.graph.listitem': about(texts.listItem),
  'app.bsky.graph.listblock': about(texts.listBlock),
  'app.bsky.graph.starterpack': named(texts.starterPack, 'name', 'description'),
  'app.bsky.actor.profile': named(texts.profile, 'displayName', 'description'),
}

/** Members in which records of other kinds usually say what they are about. */
const usualNames = ['title', 'name', 'displayName', 'text', 'description', 'subject', 'url'] as const

/** `value` is null if the record is too large to be shown in a list. */
export function recordWords(path: string, value: Value | null): RecordWords {
  const collection = path.slice(0, path.indexOf('/'))
  if (value === null) return { what: texts.large, text: null }
  return kinds[collection]?.(value) ?? { what: texts.other, text: textIn(value, ...usualNames) }
}
