/**
 * Scopes that can limit an app password: the OAuth scopes, except those that only the account itself may have, and
 * named presets of them.
 */
import { scopeGrammar } from './scope-grammar.ts'
import { BASE_SCOPE, isBoundedScope, parseScopes } from './scopes.ts'

/** Longest scope text. Every access token carries it. */
const MAX_SCOPE_CHARS = 4096

/** What a standard app password may do, except for direct messages and the email address. */
const UNLIMITED = 'transition:generic'

/** Read-only AppView methods, including those that return the account's own data. */
const readMethods = [
  'actor.getPreferences',
  'actor.getProfile',
  'actor.getProfiles',
  'actor.getSuggestions',
  'actor.searchActors',
  'actor.searchActorsTypeahead',
  'bookmark.getBookmarks',
  'feed.getActorFeeds',
  'feed.getActorLikes',
  'feed.getAuthorFeed',
  'feed.getFeed',
  'feed.getFeedGenerator',
  'feed.getFeedGenerators',
  'feed.getFeedSkeleton',
  'feed.getLikes',
  'feed.getListFeed',
  'feed.getPostThread',
  'feed.getPosts',
  'feed.getQuotes',
  'feed.getRepostedBy',
  'feed.getSuggestedFeeds',
  'feed.getTimeline',
  'feed.searchPosts',
  'graph.getActorStarterPacks',
  'graph.getBlocks',
  'graph.getFollowers',
  'graph.getFollows',
  'graph.getKnownFollowers',
  'graph.getList',
  'graph.getListBlocks',
  'graph.getListMutes',
  'graph.getLists',
  'graph.getMutes',
  'graph.getRelationships',
  'graph.getStarterPack',
  'graph.getStarterPacks',
  'labeler.getServices',
  'notification.getPreferences',
  'notification.getUnreadCount',
  'notification.listNotifications',
  'unspecced.getPostThreadOtherV2',
  'unspecced.getPostThreadV2',
]

/**
 * Presets by name. The names are part of the wire format and never change. An app password keeps the scopes that it was
 * made with.
 */
export const scopePresets = {
  post: 'repo:app.bsky.feed.post?action=create',
  read: `rpc?${readMethods.map((method) => `lxm=app.bsky.${method}`).join('&')}&aud=*`,
  'upload-images': 'blob:image/*',
}

const isScopePreset = (name: string): name is keyof typeof scopePresets => Object.hasOwn(scopePresets, name)

/**
 * Returns the scope text of an app password: the base scope, the given scopes and those of the presets; without any,
 * what apps usually need (`transition:generic`). On failure, the message names the faulty scope, or the known presets.
 */
export function appPasswordScope({
  scope,
  presets,
}: {
  scope: string
  presets: readonly string[]
}): { ok: true; scope: string } | { ok: false; message: string } {
  if (!isBoundedScope(scope)) return { ok: false, message: 'scope is too long' }
  const unknown = presets.find((name) => !isScopePreset(name))
  if (unknown !== undefined)
    return { ok: false, message: `presets must be some of ${Object.keys(scopePresets).join(', ')}` }
  const given = scope.split(' ').filter(Boolean)
  const known = new Set(parseScopes(given.join(' ')))
  for (const value of given) {
    if (!known.has(value)) return { ok: false, message: `scope has an unknown value: ${value}` }
    const fault = faultOfScope(value)
    if (fault !== null) return { ok: false, message: `scope has a value that ${fault}: ${value}` }
  }
  const wanted = [...given, ...presets.flatMap((name) => (isScopePreset(name) ? [scopePresets[name]] : []))]
  const values = new Set([BASE_SCOPE, ...wanted])
  if (values.size === 1) values.add(UNLIMITED)
  const text = [...values].join(' ')
  return text.length > MAX_SCOPE_CHARS ? { ok: false, message: 'scope is too long' } : { ok: true, scope: text }
}

/** Why an app password cannot have a scope; null if it can. */
function faultOfScope(value: string): string | null {
  const { AccountPermission, IdentityPermission, IncludeScope } = scopeGrammar()
  if (IncludeScope.fromString(value)) return 'names a permission set, which an app password cannot have'
  if (IdentityPermission.fromString(value)) return 'only the account itself may have'
  return AccountPermission.fromString(value)?.action.includes('manage') ? 'only the account itself may have' : null
}
