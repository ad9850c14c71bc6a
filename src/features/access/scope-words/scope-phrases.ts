/** Describes scopes in plain words for the person who is asked to grant them. */
import type {
  AccountPermission,
  BlobPermission,
  IdentityPermission,
  RepoPermission,
  RpcPermission,
} from '@atproto/oauth-scopes'
import { inEnglish, plainName, type Wording } from '../../../http/html.ts'
import { listPhrase } from '../../../http/texts.ts'
import { scopeGrammar } from '../../../protocol/scope-grammar.ts'
import { scopePresets } from '../../../protocol/app-password-scopes.ts'
import type { ExpandedScope } from '../../../protocol/scopes.ts'
import { scopeTexts as texts } from './scope-texts.ts'

export interface Words {
  what: Wording
  more: Wording
  /** The page marks the permission as far-reaching. */
  isGrave?: boolean
}

const statics: Record<string, Words> = {
  atproto: { what: texts.identity, more: texts.identityMore },
  'transition:generic': { what: texts.generic, more: texts.genericMore, isGrave: true },
  [scopePresets.read]: { what: texts.read, more: texts.readMore },
  'transition:email': { what: texts.email, more: texts.emailMore },
  'transition:chat.bsky': { what: texts.chat, more: texts.chatMore, isGrave: true },
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

/** By what may be done, in this order. */
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

/** The text with its first letter in upper case. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

function repoWords({ collection, action }: RepoPermission): Words {
  const doing = deedTexts[deeds.filter((deed) => action.includes(deed)).join(' ')]!
  if (collection.includes('*'))
    return { what: doing({ kinds: texts.anyData }), more: texts.anyDataMore, isGrave: action.includes('delete') }
  return { what: doing({ kinds: listPhrase(collection.map(collectionWords)) }), more: texts.someDataMore }
}

/** The last segment of a method's NSID as words: `getTimeline` becomes `get timeline`. */
const methodWords = (lxm: string): string =>
  lxm
    .slice(lxm.lastIndexOf('.') + 1)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()

function rpcWords({ aud, lxm }: RpcPermission): Words {
  const service = aud === '*' ? texts.anyService : aud.replace(/^did:web:/, '').split('#', 1)[0]!
  const what = texts.service({ service })
  if (lxm.includes('*')) return { what, more: texts.serviceAll, isGrave: true }
  return { what, more: texts.serviceFor({ methods: lxm.map(methodWords).join(', ') }) }
}

const mediaKinds: Record<string, Wording> = {
  'image/*': texts.images,
  'video/*': texts.videos,
  'audio/*': texts.sound,
  'text/*': texts.textFiles,
  '*/*': texts.anyFiles,
}

const blobWords = ({ accept }: BlobPermission): Words => ({
  what: texts.upload({ kinds: listPhrase(accept.map((type) => mediaKinds[type] ?? texts.filesOf({ type }))) }),
  more: texts.uploadMore,
})

const accountWords: Record<AccountPermission['attr'], Record<'read' | 'manage', Words>> = {
  email: {
    read: { what: texts.email, more: texts.emailMore },
    manage: { what: texts.emailManage, more: texts.emailManageMore, isGrave: true },
  },
  repo: {
    read: { what: texts.repo, more: texts.repoMore },
    manage: { what: texts.repoManage, more: texts.repoManageMore, isGrave: true },
  },
  status: {
    read: { what: texts.accountState, more: texts.accountStateMore },
    manage: { what: texts.accountManage, more: texts.accountManageMore, isGrave: true },
  },
}

const identityWords = ({ attr }: IdentityPermission): Words =>
  attr === '*'
    ? { what: texts.identityAll, more: texts.identityAllMore, isGrave: true }
    : { what: texts.handle, more: texts.handleMore, isGrave: true }

/**
 * Describe what one scope allows. A permission set is described by the permissions that it expands to; of its author's
 * text only the title is shown, in quotation marks. `parts` describes those permissions, and is empty for any other
 * scope.
 */
export function wordsOf({ scope, grants, title }: ExpandedScope): Words & { parts: Words[] } {
  const parts = grants.length === 1 && grants[0] === scope ? [] : grants.map(singleWords)
  if (parts.length === 0 && title === null) return { ...singleWords(scope), parts }
  return {
    what: title === null ? texts.set : texts.setTitle({ title: plainName(title) }),
    more: parts.length === 0 ? texts.setNothing : texts.setAllows,
    isGrave: parts.some(({ isGrave }) => isGrave),
    parts,
  }
}

function singleWords(scope: string): Words {
  const known = statics[scope]
  if (known) return known
  const grammar = scopeGrammar()
  const repo = grammar.RepoPermission.fromString(scope)
  if (repo) return repoWords(repo)
  const rpc = grammar.RpcPermission.fromString(scope)
  if (rpc) return rpcWords(rpc)
  const blob = grammar.BlobPermission.fromString(scope)
  if (blob) return blobWords(blob)
  const account = grammar.AccountPermission.fromString(scope)
  if (account) return accountWords[account.attr][account.action.includes('manage') ? 'manage' : 'read']
  const identity = grammar.IdentityPermission.fromString(scope)
  return identity ? identityWords(identity) : { what: scope, more: '' }
}

/** The same in English, as plain text, for a terminal. */
export function wordsInEnglish(expanded: ExpandedScope): { what: string; more: string; isGrave: boolean } {
  const { what, more, isGrave = false } = wordsOf(expanded)
  return { what: inEnglish(what), more: inEnglish(more), isGrave }
}
