/**
 * Scopes: what an app may do, in the grammar of atproto "Permissions". `@atproto/oauth-scopes` implements the grammar;
 * this module adds the rules of the service.
 */
import type { LexiconPermissionSet, RpcPermissionMatch, ScopePermissionsTransition } from '@atproto/oauth-scopes'
import { BoundedCache } from '../base/bounded-cache.ts'
import { madeOnce } from '../base/made-once.ts'
import { isDraftAudience, isDraftMethod } from './guarded-methods.ts'
import type { Did, Nsid } from './identifiers.ts'
import { scopeGrammar } from './scope-grammar.ts'
import {
  declaringType,
  formatSpaceScope,
  parseSpaceScope,
  spacePermissionsOf,
  spaceScopeInSet,
  spaceScopeOf,
  withDeclared,
  type SpacePermissions,
} from './space-scopes.ts'
import type { SpaceTypeName } from './space-type-name.ts'

/** The scope in every grant, and the only one that cannot be declined: the app learns who signed in. */
export const BASE_SCOPE = 'atproto'

/** Most permission sets in one request. */
const MAX_INCLUDES = 5
/** Longest text of scopes that an app declares or requests. */
export const MAX_SCOPE_CHARS = 8192
/** Most scopes in one text, and most that permission sets may expand to. */
export const MAX_SCOPES = 500
/** Longest lists of permissions in all sets of a request, as JSON. A grant that fits an access token is far shorter. */
const MAX_SETS_CHARS = 64 * 1024

/**
 * Scope values in the requested order, each once. Values that this version does not know are left out, and so are space
 * scopes unless `spaces` is true.
 */
export function parseScopes(text: string, { spaces = false } = {}): string[] {
  if (text.length > MAX_SCOPE_CHARS) return []
  return [...new Set(text.split(' '))].filter((value) => isScope(value) || (spaces && parseSpaceScope(value) !== null))
}

function isScope(value: string): boolean {
  try {
    return scopeGrammar().isAtprotoOauthScope(value) && !isForDrafts(value)
  } catch {
    return false // a percent sign that encodes nothing
  }
}

/** Whether a scope is only for methods of permissioned data, which no service token may call. */
function isForDrafts(scope: string): boolean {
  const rpc = scopeGrammar().RpcPermission.fromString(scope)
  return rpc !== null && (rpc.lxm.every(isDraftMethod) || isDraftAudience(rpc.aud))
}

/** Whether the text is short enough, and has few enough values, to be compared and granted. */
export const isBoundedScope = (text: string): boolean =>
  text.length <= MAX_SCOPE_CHARS && text.split(' ').length <= MAX_SCOPES

/**
 * The scopes that a client declares, in the form in which requested ones are looked up. A scope that this version does
 * not know counts as declared if the client metadata contains the same text.
 */
export class DeclaredScopes {
  readonly #texts: ReadonlySet<string>

  constructor(scopes: readonly string[]) {
    this.#texts = new Set(scopes.flatMap((scope) => [scope, canonical(scope)]))
  }

  has(scope: string): boolean {
    return this.#texts.has(scope) || this.#texts.has(canonical(scope))
  }
}

/** One canonical text for all texts that mean the same scope. A text that is not a scope is returned unchanged. */
function canonical(scope: string): string {
  const ofSpaces = parseSpaceScope(scope)
  if (ofSpaces !== null) return formatSpaceScope(ofSpaces)
  return (isScope(scope) && scopeGrammar().normalizeAtprotoOauthScopeValue(scope)) || scope
}

/** `openid` asks for OpenID Connect, which is not supported; without a check it would be dropped silently. */
export const asksForOpenId = (text: string): boolean => text.split(' ').includes('openid')

/** The granted scopes, in the requested order and always with the base scope. */
export const narrowedScopes = (requested: readonly string[], granted: ReadonlySet<string>): string[] =>
  requested.filter((scope) => scope === BASE_SCOPE || granted.has(scope))

// Permission sets

/** Looks up the published permission set of a name; null if none can be found, and a reason if it is too large. */
export type PermissionSetSource = (nsid: string) => Promise<LexiconPermissionSet | string | null>

/** What the author of a type of spaces declares. */
export interface SpaceDeclaration {
  name: SpaceTypeName
  collections: readonly Nsid[]
}

/** Looks up the declaration of a type of spaces; null if none can be found. */
export type SpaceTypeSource = (type: Nsid) => Promise<SpaceDeclaration | null>

export interface ExpandedScope {
  /** The requested scope. */
  scope: string
  /** The scopes to which it expands: the scope itself, or the scopes of the permission set. */
  grants: readonly string[]
  /** Title and detail of the permission set; null for any other scope. */
  title: string | null
  detail: string | null
}

/** A scope that is no permission set. */
export const singleScope = (scope: string): ExpandedScope => ({ scope, grants: [scope], title: null, detail: null })

/**
 * `unresolved`: a published document cannot be found now. `too-many`: the request asks for more than can be granted.
 */
export type Expansion =
  { ok: true; scopes: ExpandedScope[] } | { ok: false; fault: 'unresolved' | 'too-many'; reason: string }

const tooMany = (reason: string): Expansion => ({ ok: false, fault: 'too-many', reason })

/**
 * Replace every `include:` by the permissions of its set. Entries outside the set's own namespace are ignored. Fails if
 * a set cannot be found, because users cannot consent to unknown permissions, and if there are more than `MAX_SCOPES`
 * scopes.
 */
export async function expandScopes(
  scopes: readonly string[],
  source: PermissionSetSource,
  spaceTypes: SpaceTypeSource | null = null,
): Promise<Expansion> {
  const { IncludeScope } = scopeGrammar()
  const includes = scopes.filter((scope) => IncludeScope.fromString(scope) !== null)
  if (includes.length > MAX_INCLUDES) return tooMany(`at most ${MAX_INCLUDES} permission sets may be requested`)
  const expanded: ExpandedScope[] = []
  let chars = 0
  for (const scope of scopes) {
    const include = IncludeScope.fromString(scope)
    if (include === null) {
      expanded.push(singleScope(scope))
      continue
    }
    const set = await source(include.nsid)
    if (set === null)
      return { ok: false, fault: 'unresolved', reason: `the permission set ${include.nsid} cannot be resolved` }
    if (typeof set === 'string') return tooMany(set)
    if (set.permissions.length > MAX_SCOPES)
      return tooMany(`the permission set ${include.nsid} has more than ${MAX_SCOPES} permissions`)
    chars += JSON.stringify(set.permissions).length
    if (chars > MAX_SETS_CHARS)
      return tooMany(`the permission sets up to ${include.nsid} have more than ${MAX_SETS_CHARS} characters`)
    const ofSpaces = set.permissions.flatMap((entry) => spaceScopeInSet(include.nsid, { ...entry }) ?? [])
    expanded.push({
      scope,
      grants: [
        ...include.toScopes(set).filter(isScope),
        ...(spaceTypes === null ? [] : ofSpaces.map(formatSpaceScope)),
      ],
      title: set.title ?? null,
      detail: set.detail ?? null,
    })
  }
  const count = grantsOf(expanded).length
  if (count > MAX_SCOPES)
    return tooMany(`the request comes to ${count} permissions, and at most ${MAX_SCOPES} can be granted`)
  return spaceTypes === null ? { ok: true, scopes: expanded } : declared(expanded, spaceTypes)
}

/** Fills in the collections of space scopes that leave them to the declaration of the space type. */
async function declared(expanded: readonly ExpandedScope[], source: SpaceTypeSource): Promise<Expansion> {
  const types = new Set(grantsOf(expanded).flatMap((scope) => typeToDeclare(scope) ?? []))
  if (types.size > MAX_INCLUDES) return tooMany(`at most ${MAX_INCLUDES} types of spaces may be left to declare`)
  const known = new Map<Nsid, SpaceDeclaration>()
  for (const type of types) {
    const declaration = await source(type)
    if (declaration === null)
      return { ok: false, fault: 'unresolved', reason: `the declaration of the space type ${type} cannot be resolved` }
    known.set(type, declaration)
  }
  const complete = (scope: string): string => {
    const type = typeToDeclare(scope)
    return type === null ? scope : formatSpaceScope(withDeclared(parseSpaceScope(scope)!, known.get(type)!.collections))
  }
  return { ok: true, scopes: expanded.map((one) => ({ ...one, grants: one.grants.map(complete) })) }
}

function typeToDeclare(scope: string): Nsid | null {
  const parsed = parseSpaceScope(scope)
  return parsed && declaringType(parsed)
}

/**
 * Whether the grants of a scope depend on a document that others publish: a permission set, or the declaration of a
 * space type.
 */
export const isPublishedElsewhere = (scope: string): boolean => isInclude(scope) || typeToDeclare(scope) !== null

export const isForSpaces = (scope: string): boolean => parseSpaceScope(scope) !== null

/** A scope as it is granted to an account: `self` is replaced by the DID of the account. */
export function scopeFor(account: Did, scope: string): string {
  const ofSpaces = parseSpaceScope(scope)
  return ofSpaces === null ? scope : formatSpaceScope(spaceScopeOf(ofSpaces, account))
}

const isInclude = (scope: string): boolean => scope.startsWith('include:') || scope.startsWith('include?')

/** All expanded scopes, each once. */
export const grantsOf = (scopes: readonly ExpandedScope[]): string[] => [
  ...new Set(scopes.flatMap(({ grants }) => grants)),
]

// Matching

/** Matches case-insensitively: host names have no case, and another service may be lenient. */
const chatSpelling = /^chat\.bsky\./i

/**
 * What a grant allows. An audience is compared as text, with its fragment. Methods of direct messages are recognised in
 * any case. Methods and services of permissioned data are in no grant, however wide it is; only scopes that name spaces
 * allow something there (`spaces`).
 */
export type Permissions = ScopePermissionsTransition & { readonly spaces: SpacePermissions }

/** Returns a factory of permissions for scopes, limited to other scopes if there are any. */
function permissionsMaker(): (scope: string, within: Permissions | null) => Permissions {
  const grammar = scopeGrammar()
  /** Reads the scopes that are about a resource. */
  const readers = {
    account: grammar.AccountPermission,
    blob: grammar.BlobPermission,
    identity: grammar.IdentityPermission,
    repo: grammar.RepoPermission,
    rpc: grammar.RpcPermission,
  }

  /**
   * Scopes that are parsed once. A request with many records asks about each record, and the base class would parse all
   * scope texts again for every question.
   */
  class ParsedScopes extends grammar.ScopesSet {
    readonly #parsed = new Map<string, { matches(options: never): boolean }[]>()

    override matches(resource: keyof typeof readers, options: object): boolean {
      return this.#about(resource).some((permission) => permission.matches(options as never))
    }

    #about(resource: keyof typeof readers) {
      const known = this.#parsed.get(resource)
      if (known) return known
      const parsed = [...this].flatMap((scope) => readers[resource].fromString(scope) ?? [])
      this.#parsed.set(resource, parsed)
      return parsed
    }
  }

  class GrantedPermissions extends grammar.ScopePermissionsTransition {
    override readonly scopes: ParsedScopes

    readonly spaces: SpacePermissions

    constructor(scope: string) {
      super()
      this.scopes = new ParsedScopes(scope.split(' '))
      this.spaces = spacePermissionsOf(scope.split(' ').flatMap((value) => parseSpaceScope(value) ?? []))
    }

    override allowsRpc(given: RpcPermissionMatch): boolean {
      if (isDraftMethod(given.lxm) || isDraftAudience(given.aud)) return false
      return super.allowsRpc({ ...given, lxm: given.lxm.replace(chatSpelling, 'chat.bsky.') })
    }
  }

  /**
   * Permissions limited by other permissions. The inherited methods that throw call these. Nothing is allowed in
   * spaces.
   */
  class NarrowedPermissions extends GrantedPermissions {
    override readonly spaces = spacePermissionsOf([])

    constructor(
      scope: string,
      readonly within: Permissions,
    ) {
      super(scope)
    }

    override allowsAccount(given: Parameters<Permissions['allowsAccount']>[0]): boolean {
      return super.allowsAccount(given) && this.within.allowsAccount(given)
    }

    override allowsIdentity(given: Parameters<Permissions['allowsIdentity']>[0]): boolean {
      return super.allowsIdentity(given) && this.within.allowsIdentity(given)
    }

    override allowsBlob(given: Parameters<Permissions['allowsBlob']>[0]): boolean {
      return super.allowsBlob(given) && this.within.allowsBlob(given)
    }

    override allowsRepo(given: Parameters<Permissions['allowsRepo']>[0]): boolean {
      return super.allowsRepo(given) && this.within.allowsRepo(given)
    }

    override allowsRpc(given: RpcPermissionMatch): boolean {
      return super.allowsRpc(given) && this.within.allowsRpc(given)
    }
  }

  return (scope, within) => (within === null ? new GrantedPermissions(scope) : new NarrowedPermissions(scope, within))
}

const makePermissions = madeOnce(permissionsMaker)

/** Permissions by scope text: an app presents the same scope with every request. */
const MAX_KNOWN_CHARS = 4 * 1024 ** 2
const knownPermissions = new BoundedCache<Permissions>(MAX_KNOWN_CHARS, (key) => key.length + 1)

/** `scope`: values separated by spaces. `within`: further scopes that must allow the same; null if there are none. */
export function permissionsOf(scope: string, within: string | null = null): Permissions {
  const key = within === null ? scope : `${scope}\n${within}`
  const known = knownPermissions.get(key)
  if (known) return known
  const made = makePermissions()(scope, within === null ? null : permissionsOf(within))
  knownPermissions.set(key, made)
  return made
}
