/**
 * Scopes: what an app may do, spelled in the grammar of atproto ("Permissions"). The grammar is that of
 * `@atproto/oauth-scopes`; here is what the service decides around it.
 */
import { IncludeScope, isAtprotoOauthScope, type LexiconPermissionSet, type RpcPermissionMatch, ScopePermissionsTransition } from '@atproto/oauth-scopes'
import { BoundedCache } from '../base/bounded-cache.ts'

/** Every grant holds it, and it alone cannot be declined: the app learns who signed in. */
export const BASE_SCOPE = 'atproto'

/** Permission sets that one request may name. */
const MAX_INCLUDES = 5
const MAX_SCOPE_CHARS = 8192

/** Values in the order they were asked for, each once. What this version does not understand is left out. */
export function parseScopes(text: string): string[] {
  if (text.length > MAX_SCOPE_CHARS) return []
  return [...new Set(text.split(' '))].filter(isScope)
}

function isScope(value: string): boolean {
  try {
    return isAtprotoOauthScope(value)
  } catch {
    return false // a percent sign that encodes nothing
  }
}

/** `openid` asks for a protocol that is not spoken here, and would be dropped without a word. */
export const asksForOpenId = (text: string): boolean => text.split(' ').includes('openid')

/** What was granted of what was asked: in the order of the request, and never without the base. */
export const narrowedScopes = (requested: readonly string[], granted: ReadonlySet<string>): string[] =>
  requested.filter((scope) => scope === BASE_SCOPE || granted.has(scope))

// Permission sets

/** The published permission set of a name; null when there is none to be found. */
export type PermissionSetSource = (nsid: string) => Promise<LexiconPermissionSet | null>

export interface ExpandedScope {
  /** As it was asked for. */
  scope: string
  /** What it comes to: itself, or what the permission set holds. */
  grants: readonly string[]
  /** Of the permission set; null for any other scope. */
  title: string | null
  detail: string | null
}

export type Expansion = { ok: true; scopes: ExpandedScope[] } | { ok: false; reason: string }

/**
 * Replace every `include:` by what its permission set grants. Entries outside the set's own group of names count for
 * nothing. Fails when a set cannot be found, so that nobody consents to what nobody can see.
 */
export async function expandScopes(scopes: readonly string[], source: PermissionSetSource): Promise<Expansion> {
  const includes = scopes.filter((scope) => IncludeScope.fromString(scope) !== null)
  if (includes.length > MAX_INCLUDES) return { ok: false, reason: `at most ${MAX_INCLUDES} permission sets may be asked for` }
  const expanded: ExpandedScope[] = []
  for (const scope of scopes) {
    const include = IncludeScope.fromString(scope)
    if (include === null) {
      expanded.push({ scope, grants: [scope], title: null, detail: null })
      continue
    }
    const set = await source(include.nsid)
    if (set === null) return { ok: false, reason: `the permission set ${include.nsid} cannot be resolved` }
    expanded.push({ scope, grants: include.toScopes(set), title: set.title ?? null, detail: set.detail ?? null })
  }
  return { ok: true, scopes: expanded }
}

export const isInclude = (scope: string): boolean => scope.startsWith('include:') || scope.startsWith('include?')

/** What is granted in the end, without repetition. */
export const grantsOf = (scopes: readonly ExpandedScope[]): string[] => [...new Set(scopes.flatMap(({ grants }) => grants))]

// Matching

/** Names of hosts know no case, and a service that is asked later may be lenient. */
const chatSpelling = /^chat\.bsky\./i

/** What a grant allows. An audience counts as it is written, with its fragment. Direct messages are recognised however their method is spelled. */
export class Permissions extends ScopePermissionsTransition {
  override allowsRpc(given: RpcPermissionMatch): boolean {
    return super.allowsRpc({ ...given, lxm: given.lxm.replace(chatSpelling, 'chat.bsky.') })
  }
}

/** By scope: an app brings the same one with every request. */
const knownPermissions = new BoundedCache<Permissions>(20_000)

/** `scope`: values separated by spaces. */
export function permissionsOf(scope: string): Permissions {
  const known = knownPermissions.get(scope)
  if (known) return known
  const made = new Permissions(scope)
  knownPermissions.set(scope, made)
  return made
}
