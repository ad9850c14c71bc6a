/**
 * Who may do what in spaces: apps whose grant names the space. A grant for public data allows nothing here, and neither
 * do app passwords, agents and delegates. In development, sessions of the account's password may do everything.
 */
import { forbidden, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatSpaceScope, type SpaceParts, type SpacePermissions } from '../../../protocol/space-scopes.ts'
import { access } from '../../access/auth/auth.ts'
import type { AccessCaller } from '../../access/callers/callers.ts'

/**
 * Guards of methods for an account's own data in spaces. The handler checks the permission, once it knows which one is
 * needed.
 */
export const spaceReader = access({ grants: 'any', refusesTakendown: true })
/** The transaction of the write revalidates the caller. */
export const spaceWriter = access({ grants: 'any', handlerRevalidates: true })

const all: SpacePermissions = { mayRead: () => true, mayWrite: () => true }

/**
 * Returns what the caller may do in spaces. Throws `Forbidden` if this kind of credential can never do anything there.
 */
export function spacePermissions({ config }: Context, caller: AccessCaller): SpacePermissions {
  if (caller.credential === 'oauth') return caller.permissions.spaces
  if (caller.credential === 'full' && config.development) return all
  throw forbidden('Spaces are open to apps that were granted access to them by OAuth')
}

/** Throws `ScopeMissingError`, with the narrowest scope that suffices, unless the caller may read its own records. */
export function requireOwnRead(permissions: SpacePermissions, space: SpaceParts): void {
  if (permissions.mayRead(space, 'read_self')) return
  throw scopeMissing({ ...space, collections: [], actions: ['read_self'], manage: [] })
}

/** The refusal of a grant that lacks a scope. Apps read the name of the scope, and ask for it. */
export const scopeMissing = (scope: Parameters<typeof formatSpaceScope>[0]): Refusal =>
  new Refusal(403, 'ScopeMissingError', `Missing required scope "${formatSpaceScope(scope)}"`)

/**
 * Refuses any repository but the caller's own with `RepoNotFound`: a grant is not a credential of a space, not even for
 * accounts of the same server.
 */
export function requireOwnRepo(caller: AccessCaller, repo: Did): void {
  if (repo !== caller.did) throw repoNotFound()
}

/** The same refusal whether the account, its repository or access to it is missing. */
export const repoNotFound = () => new Refusal(400, 'RepoNotFound', 'Could not find the repository')
