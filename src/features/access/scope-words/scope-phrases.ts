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
import { parseSpaceScope } from '../../../protocol/space-scopes.ts'
import { collectionWords, deedPhrase, type Words } from './collection-phrases.ts'
import { scopeTexts as texts } from './scope-texts.ts'
import { noSpaceNames, spaceWords, type SpaceNames } from './space-phrases.ts'

export type { Words } from './collection-phrases.ts'

const statics: Record<string, Words> = {
  atproto: { what: texts.identity, more: texts.identityMore },
  'transition:generic': { what: texts.generic, more: texts.genericMore, isGrave: true },
  [scopePresets.read]: { what: texts.read, more: texts.readMore },
  'transition:email': { what: texts.email, more: texts.emailMore },
  'transition:chat.bsky': { what: texts.chat, more: texts.chatMore, isGrave: true },
}

/** The text with its first letter in upper case. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

function repoWords({ collection, action }: RepoPermission): Words {
  if (collection.includes('*'))
    return { what: deedPhrase(action, texts.anyData), more: texts.anyDataMore, isGrave: action.includes('delete') }
  return { what: deedPhrase(action, listPhrase(collection.map(collectionWords))), more: texts.someDataMore }
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
 * Describe what one scope allows. A permission set is described by the permissions to which it expands. Only the title
 * is in its author's words, in quotation marks. `parts` describes those permissions, or what a scope for spaces allows
 * there, and is empty for any other scope.
 */
export function wordsOf({ scope, grants, title }: ExpandedScope, names = noSpaceNames): Words & { parts: Words[] } {
  const ofSpaces = parseSpaceScope(scope)
  if (ofSpaces !== null) return spaceWords(parseSpaceScope(grants[0] ?? scope) ?? ofSpaces, names)
  const parts = grants.length === 1 && grants[0] === scope ? [] : grants.map((grant) => singleWords(grant, names))
  if (parts.length === 0 && title === null) return { ...singleWords(scope, names), parts }
  return {
    what: title === null ? texts.set : texts.setTitle({ title: plainName(title) }),
    more: parts.length === 0 ? texts.setNothing : texts.setAllows,
    isGrave: parts.some(({ isGrave }) => isGrave),
    parts,
  }
}

function singleWords(scope: string, names: SpaceNames): Words {
  const known = statics[scope]
  if (known) return known
  const ofSpaces = parseSpaceScope(scope)
  if (ofSpaces !== null) return spaceWords(ofSpaces, names)
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

/** Like `wordsOf`, in English and as plain text, for a terminal. */
export function wordsInEnglish(expanded: ExpandedScope): { what: string; more: string; isGrave: boolean } {
  const { what, more, isGrave = false } = wordsOf(expanded)
  return { what: inEnglish(what), more: inEnglish(more), isGrave }
}
