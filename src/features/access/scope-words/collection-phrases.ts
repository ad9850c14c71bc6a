/** Scopes for records in plain words. */
import type { Wording } from '../../../http/html.ts'
import { scopeTexts as texts } from './scope-texts.ts'

export interface Words {
  what: Wording
  more: Wording
  /** The page marks the permission as far-reaching. */
  isGrave?: boolean
}

/** Everyday names of well-known collections. */
const collections: Record<string, Wording> = {
  'app.bsky.actor.profile': texts.profile,
  'app.bsky.actor.status': texts.status,
  'app.bsky.feed.post': texts.posts,
  'app.bsky.feed.like': texts.likes,
  'app.bsky.feed.repost': texts.reposts,
  'app.bsky.feed.generator': texts.feeds,
  'app.bsky.feed.threadgate': texts.replySettings,
  'app.bsky.feed.postgate': texts.quoteSettings,
  'app.bsky.graph.follow': texts.follows,
  'app.bsky.graph.block': texts.blocks,
  'app.bsky.graph.list': texts.lists,
  'app.bsky.graph.listitem': texts.listMembers,
  'app.bsky.graph.listblock': texts.listBlocks,
  'app.bsky.graph.starterpack': texts.starterPacks,
}

/** The everyday name of a collection, or its NSID. */
export const collectionWords = (name: string): Wording => collections[name] ?? name

/** What may be done with records, in this order. */
const deeds = ['create', 'update', 'delete'] as const
const deedTexts: Record<string, typeof texts.create> = {
  create: texts.create,
  update: texts.update,
  delete: texts.delete,
  'create update': texts.createUpdate,
  'create delete': texts.createDelete,
  'update delete': texts.updateDelete,
  'create update delete': texts.createUpdateDelete,
}

/** `Create and delete posts`. At least one of the actions must change something. */
export const deedPhrase = (actions: readonly string[], kinds: Wording): Wording =>
  deedTexts[deeds.filter((deed) => actions.includes(deed)).join(' ')]!({ kinds })
