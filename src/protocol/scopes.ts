/**
 * Scopes: what an app may do, in the grammar of atproto "Permissions". `@atproto/oauth-scopes` implements the grammar;
 * this module adds the rules of the service.
 */
import {
  IncludeScope,
  isAtprotoOauthScope,
  type LexiconPermissionSet,
  type RpcPermissionMatch,
  ScopePermissionsTransition,
} from '@atproto/oauth-scopes'
import { BoundedCache } from '../base/bounded-cache.ts'

/** The scope in every grant, and the only one that cannot be declined: the app learns who signed in. */
export const BASE_SCOPE = 'atproto'

/** Most permission sets in one request. */
const MAX_INCLUDES = 5
const MAX_SCOPE_CHARS = 8192

/** Scope values in the requested order, each once. Values that this version does not know are left out. */
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

/** `openid` asks for OpenID Connect, which is not supported; without a check it would be dropped silently. */
export const asksForOpenId = (text: string): boolean => text.split(' ').includes('openid')

/** The granted scopes, in the requested order and always with the base scope. */
export const narrowedScopes = (requested: readonly string[], granted: ReadonlySet<string>): string[] =>
  requested.filter((scope) => scope === BASE_SCOPE || granted.has(scope))

// Permission sets

/** Looks up the published permission set of a name; null if none can be found. */
export type PermissionSetSource = (nsid: string) => Promise<LexiconPermissionSet | null>

export interface ExpandedScope {
  /** The requested scope. */
  scope: string
  /** The scopes it expands to: itself, or those of the permission set. */
  grants: readonly string[]
  /** Title and detail of the permission set; null for any other scope. */
  title: string | null
  detail: string | null
}

export type Expansion = { ok: true; scopes: ExpandedScope[] } | { ok: false; reason: string }

/**
 * Replace every `include:` by the permissions of its set. Entries outside the set's own namespace are ignored. Fails if
 * a set cannot be found, because nobody can consent to unknown permissions.
 */
export async function expandScopes(scopes: readonly string[], source: PermissionSetSource): Promise<Expansion> {
  const includes = scopes.filter((scope) => IncludeScope.fromString(scope) !== null)
  if (includes.length > MAX_INCLUDES) return { ok: false, reason: `at most ${MAX_INCLUDES} permission sets may be requested` }
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

/** All expanded scopes, each once. */
export const grantsOf = (scopes: readonly ExpandedScope[]): string[] => [...new Set(scopes.flatMap(({ grants }) => grants))]

// Matching

/** Matches case-insensitively: host names have no case, and another service may be lenient. */
const chatSpelling = /^chat\.bsky\./i

/** What a grant allows. An audience is compared as text, with its fragment. Methods of direct messages are recognised in any case. */
export class Permissions extends ScopePermissionsTransition {
  override allowsRpc(given: RpcPermissionMatch): boolean {
    return super.allowsRpc({ ...given, lxm: given.lxm.replace(chatSpelling, 'chat.bsky.') })
  }
}

/** Permissions by scope text: an app presents the same scope with every request. */
const knownPermissions = new BoundedCache<Permissions>(20_000)

/** `scope`: values separated by spaces. */
export function permissionsOf(scope: string): Permissions {
  const known = knownPermissions.get(scope)
  if (known) return known
  const made = new Permissions(scope)
  knownPermissions.set(scope, made)
  return made
}
