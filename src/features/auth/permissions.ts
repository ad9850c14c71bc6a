/** Refusing what the grant of an app or an agent does not reach. */
import { ScopeMissingError } from '@atproto/oauth-scopes'
import { Refusal } from '../../http/errors.ts'
import type { Permissions } from '../../protocol/scopes.ts'

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
