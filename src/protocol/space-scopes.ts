/**
 * Scopes for permissioned data: which spaces an app may read, write and manage for an account.
 *
 *     space:<type>?authority=<did>&skey=<key>&collection=<nsid>&action=<action>&manage=<action>
 *
 * A scope that is not well-formed grants nothing. `self`, and collections that follow from the declaration of the type,
 * are resolved when a token is issued (`spaceScopeOf`, `withDeclared`); until then they grant nothing.
 *
 * Source: atproto proposal 0016, "OAuth scopes".
 */
import { parseDid, parseNsid, parseRecordKey, type Did, type Nsid, type RecordKey } from './identifiers.ts'

/** `read` permits reading what all members have written, `read_self` what the account itself has written. */
export const spaceActions = ['read_self', 'read', 'create', 'update', 'delete'] as const
export type SpaceAction = (typeof spaceActions)[number]
/** What may be done with spaces themselves. */
export const spaceManagement = ['create', 'update', 'delete'] as const
export type SpaceManagement = (typeof spaceManagement)[number]

const defaultActions: readonly SpaceAction[] = ['read', 'create', 'update', 'delete']
const ANY = '*'
const SELF = 'self'

export interface SpaceScope {
  type: Nsid | typeof ANY
  authority: Did | typeof SELF | typeof ANY
  skey: RecordKey | typeof ANY
  /** Collections that may be written; null for those that the type declares. */
  collections: readonly (Nsid | typeof ANY)[] | null
  actions: readonly SpaceAction[]
  manage: readonly SpaceManagement[]
}

const MAX_SCOPE_CHARS = 8192
const PREFIX = 'space'
const parameterNames = new Set(['type', 'authority', 'skey', 'collection', 'action', 'manage'])

/** Parses one scope; null if it is not for spaces or not well-formed. */
export function parseSpaceScope(text: string): SpaceScope | null {
  const [, positional, query = ''] =
    (text.length <= MAX_SCOPE_CHARS && /^space(?::([^?]*))?(?:\?(.*))?$/.exec(text)) || []
  if (positional === undefined && query === '') return null
  const parameters = new URLSearchParams(query)
  const decoded = positional === undefined ? undefined : decodedText(positional)
  if (decoded === null || ![...parameters.keys()].every((name) => parameterNames.has(name))) return null
  const types = [...(decoded === undefined ? [] : [decoded]), ...parameters.getAll('type')]
  const type = single(types, null, (value) => (value === ANY ? ANY : parseNsid(value)))
  const authority = single(parameters.getAll('authority'), SELF, (value) =>
    value === SELF || value === ANY ? value : parseDid(value),
  )
  const skey = single(parameters.getAll('skey'), ANY, (value) => (value === ANY ? ANY : parseRecordKey(value)))
  const collections = collectionsOf(parameters.getAll('collection'))
  const actions = listed(parameters.getAll('action'), spaceActions, defaultActions)
  const manage = listed(parameters.getAll('manage'), spaceManagement, [])
  if (type === null || authority === null || skey === null || !collections || actions === null || manage === null)
    return null
  const isDeclared = collections.length === 0 && type !== ANY
  return { type, authority, skey, collections: isDeclared ? null : collections, actions, manage }
}

function decodedText(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null // a percent sign that encodes nothing
  }
}

/** The value of a parameter that may be given once. */
function single<Value>(given: readonly string[], absent: Value, parse: (text: string) => Value | null): Value | null {
  if (given.length > 1) return null
  return given.length === 0 ? absent : parse(given[0]!)
}

function collectionsOf(given: readonly string[]): readonly (Nsid | typeof ANY)[] | null {
  const parsed = given.map((value) => (value === ANY ? ANY : parseNsid(value)))
  const known = parsed.filter((value) => value !== null)
  if (known.length < parsed.length) return null
  return known.includes(ANY) ? [ANY] : [...new Set(known)].toSorted()
}

/** The values that are given, in the order of `all`; null if there are others. */
function listed<Value extends string>(
  given: readonly string[],
  all: readonly Value[],
  absent: readonly Value[],
): readonly Value[] | null {
  if (given.length === 0) return absent
  const wanted = new Set(given)
  const known = all.filter((value) => wanted.has(value))
  return known.length === wanted.size ? known : null
}

/** The canonical text of a scope, which leaves out defaults. */
export function formatSpaceScope({ type, authority, skey, collections, actions, manage }: SpaceScope): string {
  const isDefault = actions.join() === defaultActions.join()
  const parameters = [
    ...(authority === SELF ? [] : [['authority', authority]]),
    ...(skey === ANY ? [] : [['skey', skey]]),
    ...(collections ?? []).map((value) => ['collection', value]),
    ...(isDefault ? [] : actions.map((value) => ['action', value])),
    ...manage.map((value) => ['manage', value]),
  ].map(([name, value]) => `${name}=${encoded(value!)}`)
  return `${PREFIX}:${encoded(type)}${parameters.length === 0 ? '' : `?${parameters.join('&')}`}`
}

const encoded = (value: string): string => encodeURIComponent(value).replaceAll('%3A', ':')

/** The scope for one account. */
export const spaceScopeOf = (scope: SpaceScope, account: Did): SpaceScope =>
  scope.authority === SELF ? { ...scope, authority: account } : scope

/**
 * The space type whose declaration lists the collections of a scope; null if the scope lists them itself, or permits no
 * writes.
 */
export const declaringType = ({ type, collections, actions }: SpaceScope): Nsid | null =>
  collections === null && type !== ANY && actions.some((action) => !action.startsWith('read')) ? type : null

/** The scope with the collections that its type declares. */
export const withDeclared = (scope: SpaceScope, declared: readonly Nsid[]): SpaceScope => ({
  ...scope,
  collections: scope.collections ?? [...new Set(declared)].toSorted(),
})

/** What a published permission set says about spaces. Other members are ignored. */
const setMembers = ['authority', 'skey', 'collection', 'action', 'manage']

/**
 * The scope that an entry of a permission set stands for; null if the entry is not about spaces, or names a type
 * outside the namespace of the set.
 */
export function spaceScopeInSet(set: string, entry: Readonly<Record<string, unknown>>): SpaceScope | null {
  const { resource, spaceType } = entry
  if (resource !== PREFIX || typeof spaceType !== 'string') return null
  const parameters = new URLSearchParams({ type: spaceType })
  for (const member of setMembers)
    for (const value of [entry[member] ?? []].flat()) parameters.append(member, String(value))
  const scope = parseSpaceScope(`${PREFIX}?${parameters}`)
  const namespace = set.slice(0, set.lastIndexOf('.') + 1)
  return scope !== null && scope.type !== ANY && scope.type.startsWith(namespace) ? scope : null
}

/** A space, or a whole class of spaces: only an asterisk in a scope covers an asterisk here. */
export interface SpaceParts {
  authority: Did | typeof ANY
  type: Nsid | typeof ANY
  skey: RecordKey | typeof ANY
}

const covers = (scope: SpaceScope, { authority, type, skey }: SpaceParts): boolean =>
  (scope.type === ANY || scope.type === type) &&
  (scope.authority === ANY || scope.authority === authority) &&
  (scope.skey === ANY || scope.skey === skey)

/** Whether a scope permits reading in a space: what the account has written, or what all members have. */
export const permitsSpaceRead = (scope: SpaceScope, space: SpaceParts, action: 'read_self' | 'read'): boolean =>
  covers(scope, space) && (scope.actions.includes('read') || scope.actions.includes(action))

/** Whether a scope permits writing records of the collection. */
export const permitsSpaceWrite = (
  scope: SpaceScope,
  space: SpaceParts,
  action: 'create' | 'update' | 'delete',
  collection: Nsid,
): boolean =>
  covers(scope, space) &&
  scope.actions.includes(action) &&
  (scope.collections?.includes(ANY) || scope.collections?.includes(collection)) === true

/** Whether a scope permits managing a space, which a scope never does by default. */
export const permitsSpaceManagement = (scope: SpaceScope, space: SpaceParts, action: SpaceManagement): boolean =>
  covers(scope, space) && scope.manage.includes(action)

/** What the space scopes of a grant permit. */
export interface SpacePermissions {
  mayRead(space: SpaceParts, action: 'read_self' | 'read'): boolean
  mayWrite(space: SpaceParts, action: 'create' | 'update' | 'delete', collection: Nsid): boolean
}

export const spacePermissionsOf = (scopes: readonly SpaceScope[]): SpacePermissions => ({
  mayRead: (space, action) => scopes.some((scope) => permitsSpaceRead(scope, space, action)),
  mayWrite: (space, action, collection) => scopes.some((scope) => permitsSpaceWrite(scope, space, action, collection)),
})
