/**
 * What two texts of scopes have in common. A delegate lets an app act for a shared account within what the app asks for
 * and what the holder of the account allows.
 */
import type { AccountPermission, BlobPermission, RepoPermission, RpcPermission } from '@atproto/oauth-scopes'
import { isChatMethod } from './guarded-methods.ts'
import { scopeGrammar } from './scope-grammar.ts'
import { BASE_SCOPE } from './scopes.ts'

const GENERIC = 'transition:generic'
const CHAT = 'transition:chat.bsky'
const EMAIL = 'transition:email'

/** A scope, read as the one thing that it is. */
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

/**
 * Returns the scopes that both allow, in the order in which they were asked for, each once. `asked` has no permission
 * sets left, and `allowed` neither sets nor scopes of the identity. The base scope stays if it was asked for.
 *
 * One case cannot be written as a scope: all methods of a service, met by a transitional scope that covers some of
 * them. If the app asks for all methods, it keeps that scope, so check its calls against `allowed` too
 * (`permissionsOf`). If the holder allows all of them, the app gets none.
 */
export function sharedScopes(asked: readonly string[], allowed: readonly string[]): string[] {
  const limits = allowed.map(read)
  return [
    ...new Set(
      asked.flatMap((scope) => {
        if (scope === BASE_SCOPE) return [scope]
        const wanted = read(scope)
        return limits.flatMap((limit) => common(wanted, limit) ?? [])
      }),
    ),
  ]
}

/** Returns null if the two have nothing in common. */
function common(asked: Read, allowed: Read): string | null {
  if (asked.scope === allowed.scope) return asked.scope
  if (asked.repo && allowed.repo) return commonRepo(asked.repo, allowed.repo)
  if (asked.rpc && allowed.rpc) return commonRpc(asked.rpc, allowed.rpc)
  if (asked.blob && allowed.blob) return commonBlob(asked.blob, allowed.blob)
  if (asked.account && allowed.account) return commonAccount(asked.account, allowed.account)
  return withinTransition(asked, allowed.scope, asked.scope) ?? withinTransition(allowed, asked.scope, null)
}

/** The part of a scope that a transitional scope covers. `everyMethod` is the part of one for all methods. */
function withinTransition({ scope, repo, rpc, blob, account }: Read, by: string, everyMethod: string | null) {
  if (by === EMAIL) return account?.attr === 'email' ? 'account:email' : null
  if (by !== GENERIC && by !== CHAT) return null
  if (rpc?.lxm.includes('*')) return everyMethod
  if (rpc)
    return rpcOf(
      rpc.aud,
      rpc.lxm.filter((lxm) => isChatMethod(lxm) === (by === CHAT)),
    )
  return by === GENERIC && (repo || blob) ? scope : null
}

/** Both lists, of which an asterisk stands for everything. */
function commonNames<Name extends string>(a: readonly Name[], b: readonly Name[]): Name[] {
  if (a.includes('*' as Name)) return [...b]
  if (b.includes('*' as Name)) return [...a]
  const known = new Set(b)
  return a.filter((name) => known.has(name))
}

function commonRepo(a: RepoPermission, b: RepoPermission): string | null {
  const collection = commonNames(a.collection, b.collection)
  const action = a.action.filter((one) => b.action.includes(one))
  if (collection.length === 0 || action.length === 0) return null
  const { RepoPermission: Permission } = scopeGrammar()
  return new Permission(collection as never, action as never).toString()
}

function commonRpc(a: RpcPermission, b: RpcPermission): string | null {
  if (a.aud !== '*' && b.aud !== '*' && a.aud !== b.aud) return null
  return rpcOf(a.aud === '*' ? b.aud : a.aud, commonNames(a.lxm, b.lxm))
}

function rpcOf(aud: RpcPermission['aud'], lxm: readonly string[]): string | null {
  if (lxm.length === 0) return null
  const { RpcPermission: Permission } = scopeGrammar()
  return new Permission(aud, lxm as never).toString()
}

function commonBlob(a: BlobPermission, b: BlobPermission): string | null {
  const accept = a.accept.flatMap((one) => b.accept.flatMap((other) => commonAccept(one, other) ?? []))
  if (accept.length === 0) return null
  const { BlobPermission: Permission } = scopeGrammar()
  return new Permission([...new Set(accept)] as never).toString()
}

/** The narrower of two ranges of media types, if it is within the wider one. */
function commonAccept(a: string, b: string): string | null {
  const covers = (wide: string, narrow: string) =>
    wide === '*/*' || wide === narrow || (wide.endsWith('/*') && narrow.startsWith(wide.slice(0, -1)))
  if (covers(a, b)) return b
  return covers(b, a) ? a : null
}

function commonAccount(a: AccountPermission, b: AccountPermission): string | null {
  if (a.attr !== b.attr) return null
  const manages = a.action.includes('manage') && b.action.includes('manage')
  return `account:${a.attr}${manages ? '?action=manage' : ''}`
}
