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

/** Guards of what an account does in spaces. The handler asks for the permission, once it knows which. */
export const spaceReader = access({ grants: 'any', refusesTakendown: true })
/** The transaction of the write revalidates the caller. */
export const spaceWriter = access({ grants: 'any', handlerRevalidates: true })

const all: SpacePermissions = { mayRead: () => true, mayWrite: () => true }

/** What the caller may do in spaces. Throws `Forbidden` if its kind of credential never may anything. */
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
 * Refuses with `RepoNotFound` what is not the caller's own repository: a grant is no credential of a space, also not
 * for accounts of the same server.
 */
export function requireOwnRepo(caller: AccessCaller, repo: Did): void {
  if (repo !== caller.did) throw repoNotFound()
}

/** The same whatever there is not: the account, its repository, or access to it. */
export const repoNotFound = () => new Refusal(400, 'RepoNotFound', 'Could not find the repository')
