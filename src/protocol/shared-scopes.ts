/**
 * The intersection of two scope texts. A delegate lets an app act for a shared account within what the app asks for and
 * what the holder of the account allows.
 */
import type { AccountPermission, BlobPermission, RepoPermission, RpcPermission } from '@atproto/oauth-scopes'
import { isChatMethod } from './guarded-methods.ts'
import { scopeGrammar } from './scope-grammar.ts'
import { BASE_SCOPE } from './scopes.ts'

const GENERIC = 'transition:generic'
const CHAT = 'transition:chat.bsky'
const EMAIL = 'transition:email'
const transitional = [GENERIC, CHAT, EMAIL]

/** A parsed scope. At most one of the permissions is set. */
interface Read {
  scope: string
  repo: RepoPermission | null
  rpc: RpcPermission | null
  blob: BlobPermission | null
  account: AccountPermission | null
}

function read(scope: string): Read {
  const { AccountPermission, BlobPermission, RepoPermission, RpcPermission } = scopeGrammar()
  return {
    scope,
    repo: RepoPermission.fromString(scope),
    rpc: RpcPermission.fromString(scope),
    blob: BlobPermission.fromString(scope),
    account: AccountPermission.fromString(scope),
  }
}

/** Longest text of the common scopes, with repetitions. A text that fits into an access token is far shorter. */
const MAX_CHARS = 64 * 1024

/**
 * Returns the scopes that both lists allow, in the order of `asked`, each once; null if they would be far too long to
 * be granted. `asked` must not contain permission sets, and `allowed` neither permission sets nor identity scopes. The
 * base scope stays if it was asked for.
 *
 * `allowed` is read into tables first: apps and holders choose the lengths of both lists, and comparing each scope with
 * every other took a quarter of a second.
 *
 * One intersection cannot be written as a scope: all methods of a service, and a transitional scope that covers some of
 * them. If the app asks for all methods and the holder allows the transitional scope, the app keeps its scope, so check
 * its calls against `allowed` too (`permissionsOf`). If the holder allows all methods and the app asks for the
 * transitional scope, the app gets none of them.
 */
export function sharedScopes(asked: readonly string[], allowed: readonly string[]): string[] | null {
  const limits = limitsOf(allowed)
  const shared = new Set<string>()
  let chars = 0
  for (const scope of new Set(asked)) {
    // The holder allows this very scope, so all of it stays.
    const common = scope === BASE_SCOPE || limits.scopes.has(scope) ? [scope] : commonOf(read(scope), limits)
    for (const one of common) {
      shared.add(one)
      chars += one.length
      if (chars > MAX_CHARS) return null
    }
  }
  return [...shared]
}

/** What the holder allows, in tables by kind of permission. An asterisk stands for everything. */
interface Limits {
  scopes: ReadonlySet<string>
  reads: readonly Read[]
  /** Collections by action. */
  repo: NamesBy
  /** Methods by audience. */
  rpc: NamesBy
  /** Media types by the part before the slash. */
  blob: NamesBy
  /** Actions by attribute. */
  account: NamesBy
}

type NamesBy = ReadonlyMap<string, ReadonlySet<string>>

const nothing: ReadonlySet<string> = new Set()

function limitsOf(allowed: readonly string[]): Limits {
  const scopes = new Set(allowed)
  const reads = Array.from(scopes, read)
  const [repo, rpc, blob, account] = [table(), table(), table(), table()]
  for (const one of reads) {
    for (const action of one.repo?.action ?? []) repo.add(action, one.repo!.collection)
    if (one.rpc) rpc.add(one.rpc.aud, one.rpc.lxm)
    for (const type of one.blob?.accept ?? []) blob.add(kindOf(type), [type])
    if (one.account) account.add(one.account.attr, one.account.action)
  }
  return { scopes, reads, repo: repo.names, rpc: rpc.names, blob: blob.names, account: account.names }
}

function table() {
  const names = new Map<string, Set<string>>()
  return {
    names,
    add(key: string, values: readonly string[]): void {
      const known = names.get(key)
      if (known === undefined) names.set(key, new Set(values))
      else for (const value of values) known.add(value)
    },
  }
}

const kindOf = (mediaType: string): string => mediaType.slice(0, mediaType.indexOf('/'))

function* commonOf(asked: Read, limits: Limits): Iterable<string> {
  if (asked.repo) yield* commonRepo(asked.repo, limits.repo)
  if (asked.rpc) yield* commonRpc(asked.rpc, limits.rpc)
  if (asked.blob) yield* commonBlob(asked.blob, limits.blob)
  if (asked.account) yield* commonAccount(asked.account, limits.account)
  for (const by of transitional) {
    if (limits.scopes.has(by)) yield* withinTransition(asked, by, asked.scope)
    if (asked.scope === by) for (const limit of limits.reads) yield* withinTransition(limit, by, null)
  }
}

/**
 * The part of a scope that the transitional scope `by` covers. `everyMethod` is the result for a scope for all methods;
 * null for none.
 */
function* withinTransition(
  { scope, repo, rpc, blob, account }: Read,
  by: string,
  everyMethod: string | null,
): Iterable<string> {
  if (by === EMAIL) {
    if (account?.attr === 'email') yield 'account:email'
  } else if (rpc?.lxm.includes('*')) {
    if (everyMethod !== null) yield everyMethod
  } else if (rpc) {
    yield* rpcOf(
      rpc.aud,
      rpc.lxm.filter((lxm) => isChatMethod(lxm) === (by === CHAT)),
    )
  } else if (by === GENERIC && (repo || blob)) yield scope
}

/** One scope for each group of collections that allow the same actions. */
function* commonRepo({ collection, action }: RepoPermission, allowed: NamesBy): Iterable<string> {
  const wanted = Array.from(new Set<string>(action), (name) => ({ name, on: allowed.get(name) ?? nothing }))
  const actionsOn = (one: string) =>
    wanted.flatMap(({ name, on }) => (on.has(one) || on.has('*') ? [name] : [])).join(' ')
  const onAny = actionsOn('*')
  const names = collection.includes('*')
    ? // A collection that allows no more than the asterisk does is covered by the asterisk.
      ['*', ...wanted.flatMap(({ on }) => [...on])].filter((one) => one === '*' || actionsOn(one) !== onAny)
    : collection
  const { RepoPermission: Permission } = scopeGrammar()
  for (const [actions, of] of Map.groupBy(new Set<string>(names), actionsOn))
    if (actions !== '') yield new Permission(of as never, actions.split(' ') as never).toString()
}

function* commonRpc({ aud, lxm }: RpcPermission, allowed: NamesBy): Iterable<string> {
  const asked = new Set<string>(lxm)
  const anywhere = allowed.get('*') ?? nothing
  if (aud !== '*') {
    const there = allowed.get(aud) ?? nothing
    if (there.has('*')) yield* rpcOf(aud, lxm)
    else if (asked.has('*')) yield* rpcOf(aud, [...there.union(anywhere)])
    else
      yield* rpcOf(
        aud,
        lxm.filter((name) => there.has(name) || anywhere.has(name)),
      )
    return
  }
  for (const [service, names] of allowed)
    yield* rpcOf(
      service as RpcPermission['aud'],
      names.has('*') ? lxm : Array.from(names).filter((name) => asked.has(name)),
    )
}

function* rpcOf(aud: RpcPermission['aud'], lxm: readonly string[]): Iterable<string> {
  if (lxm.length === 0) return
  const { RpcPermission: Permission } = scopeGrammar()
  yield new Permission(aud, lxm as never).toString()
}

function* commonBlob({ accept }: BlobPermission, allowed: NamesBy): Iterable<string> {
  const common = accept.flatMap((type): readonly string[] => {
    const kind = kindOf(type)
    const ofKind = allowed.get(kind) ?? nothing
    if (allowed.has('*') || ofKind.has(`${kind}/*`)) return [type]
    if (type === '*/*') return Array.from(allowed.values(), (types) => [...types]).flat()
    return type === `${kind}/*` ? [...ofKind] : ofKind.has(type) ? [type] : []
  })
  if (common.length === 0) return
  const { BlobPermission: Permission } = scopeGrammar()
  yield new Permission([...new Set(common)] as never).toString()
}

function* commonAccount({ attr, action }: AccountPermission, allowed: NamesBy): Iterable<string> {
  const actions = allowed.get(attr)
  if (actions === undefined) return
  const manages = action.includes('manage') && actions.has('manage')
  yield `account:${attr}${manages ? '?action=manage' : ''}`
}
