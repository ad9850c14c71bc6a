/** Describes scopes in plain words for the person who is asked to grant them. */
import type {
  AccountPermission,
  BlobPermission,
  IdentityPermission,
  RepoPermission,
  RpcPermission,
} from '@atproto/oauth-scopes'
import { plainName } from '../../../http/html.ts'
import { scopeGrammar } from '../../../protocol/scope-grammar.ts'
import { scopePresets } from '../../../protocol/app-password-scopes.ts'
import type { ExpandedScope } from '../../../protocol/scopes.ts'

export interface Words {
  what: string
  more: string
  /** The page marks the permission as far-reaching. */
  isGrave?: boolean
}

const statics: Record<string, Words> = {
  atproto: {
    what: 'Know who you are',
    more: 'Your handle and your permanent identifier. Every app that you sign in to can see these.',
  },
  'transition:generic': {
    what: 'Post and act as you',
    more: 'Create, change and delete your posts and all other public data, upload files, and use other services on your behalf. This does not include your messages, your email address or your account settings.',
    isGrave: true,
  },
  [scopePresets.read]: {
    what: 'Read what you see in apps',
    more: 'Your timeline, notifications, bookmarks and lists, and what others publish. It changes nothing.',
  },
  'transition:email': { what: 'See your email address', more: 'And whether you have confirmed it.' },
  'transition:chat.bsky': {
    what: 'Read and send messages',
    more: 'All your direct messages, old and new.',
    isGrave: true,
  },
}

/** Everyday names of well-known collections. */
const collections: Record<string, string> = {
  'app.bsky.actor.profile': 'your profile',
  'app.bsky.actor.status': 'your status',
  'app.bsky.feed.post': 'posts',
  'app.bsky.feed.like': 'likes',
  'app.bsky.feed.repost': 'reposts',
  'app.bsky.feed.generator': 'feeds',
  'app.bsky.feed.threadgate': 'reply settings',
  'app.bsky.feed.postgate': 'quote settings',
  'app.bsky.graph.follow': 'follows',
  'app.bsky.graph.block': 'blocks',
  'app.bsky.graph.list': 'lists',
  'app.bsky.graph.listitem': 'list members',
  'app.bsky.graph.listblock': 'list blocks',
  'app.bsky.graph.starterpack': 'starter packs',
}

/** The everyday name of a collection, or its NSID. */
export const collectionWords = (name: string): string => collections[name] ?? name

const verbs = { create: 'create', update: 'change', delete: 'delete' } as const

/** The text with its first letter in upper case. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

export function listed(words: readonly string[]): string {
  if (words.length <= 1) return words.join('')
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

function repoWords({ collection, action }: RepoPermission): Words {
  const doing = sentence(
    listed(
      (Object.keys(verbs) as (keyof typeof verbs)[]).filter((verb) => action.includes(verb)).map((verb) => verbs[verb]),
    ),
  )
  if (collection.includes('*'))
    return {
      what: `${doing} any of your public data`,
      more: 'Every kind of record in your repository.',
      isGrave: action.includes('delete'),
    }
  const known = collection.map(collectionWords)
  return { what: `${doing} ${listed(known)}`, more: 'Records of these kinds in your public repository, and no others.' }
}

/** The last segment of a method's NSID as words: `getTimeline` becomes `get timeline`. */
const methodWords = (lxm: string): string =>
  lxm
    .slice(lxm.lastIndexOf('.') + 1)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()

function rpcWords({ aud, lxm }: RpcPermission): Words {
  const service = aud === '*' ? 'any service' : aud.replace(/^did:web:/, '').split('#', 1)[0]!
  if (lxm.includes('*'))
    return { what: `Use ${service} on your behalf`, more: 'Everything that you can do there yourself.', isGrave: true }
  return { what: `Use ${service} on your behalf`, more: `For: ${lxm.map(methodWords).join(', ')}.` }
}

const mediaKinds: Record<string, string> = {
  'image/*': 'images',
  'video/*': 'videos',
  'audio/*': 'sound',
  'text/*': 'text files',
  '*/*': 'files of any kind',
}

const blobWords = ({ accept }: BlobPermission): Words => ({
  what: `Upload ${listed(accept.map((type) => mediaKinds[type] ?? `${type} files`))}`,
  more: 'They become public when a record uses them.',
})

const accountWords: Record<AccountPermission['attr'], Record<'read' | 'manage', Words>> = {
  email: {
    read: { what: 'See your email address', more: 'And whether you have confirmed it.' },
    manage: {
      what: 'See and change your email address',
      more: 'Control of your email address is enough to take over your account.',
      isGrave: true,
    },
  },
  repo: {
    read: { what: 'See the state of your repository', more: 'Its size, and which files it lacks.' },
    manage: { what: 'Replace all of your public data', more: 'By importing a whole repository.', isGrave: true },
  },
  status: {
    read: { what: 'See the state of your account', more: 'Whether it is active.' },
    manage: {
      what: 'Deactivate and reactivate your account',
      more: 'A deactivated account is not visible to others.',
      isGrave: true,
    },
  },
}

const identityWords = ({ attr }: IdentityPermission): Words =>
  attr === '*'
    ? {
        what: 'Control your identity',
        more: 'Your handle, and the keys and server of your account. This can move your account away for good.',
        isGrave: true,
      }
    : { what: 'Change your handle', more: 'The name by which others find you.', isGrave: true }

/**
 * Describe what one scope allows. A permission set is described by the permissions that it expands to; of its author's
 * text only the title is shown, in quotation marks. `parts` describes those permissions, and is empty for any other
 * scope.
 */
export function wordsOf({ scope, grants, title }: ExpandedScope): Words & { parts: Words[] } {
  const parts = grants.length === 1 && grants[0] === scope ? [] : grants.map(singleWords)
  if (parts.length === 0 && title === null) return { ...singleWords(scope), parts }
  return {
    what: title === null ? 'A set of permissions' : `“${plainName(title)}”`,
    more: parts.length === 0 ? 'This currently allows nothing.' : 'This allows the app to:',
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
