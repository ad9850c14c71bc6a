/** What an OAuth or agent token may do, in the scope grammar of atproto. */
import { ScopeMissingError, ScopePermissionsTransition } from '@atproto/oauth-scopes'
import { Refusal } from '../../http/errors.ts'

export type Permissions = ScopePermissionsTransition

/** `scope`: scopes separated by spaces. */
export const permissionsOf = (scope: string): Permissions => new ScopePermissionsTransition(scope)

/**
 * Run a check such as `(permissions) => permissions.assertRepo({ collection, action: 'create' })`.
 *
 * Refuses with the narrowest scope that would have satisfied it; apps read that scope and ask for consent again.
 */
export function assertPermission(permissions: Permissions, check: (permissions: Permissions) => void): void {
  try {
    check(permissions)
  } catch (error) {
    if (error instanceof ScopeMissingError) throw new Refusal(403, 'ScopeMissingError', error.message)
    throw error
  }
}
