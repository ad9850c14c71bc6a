/** Enforces the grants of apps and agents. */
import { ScopeMissingError } from '@atproto/oauth-scopes'
import { Refusal } from '../../http/errors.ts'
import type { Permissions } from '../../protocol/scopes.ts'

/**
 * Run a check such as `(permissions) => permissions.assertRepo({ collection, action: 'create' })`.
 *
 * Throws `ScopeMissingError` with the narrowest scope that would satisfy the check, which apps read to ask for consent.
 */
export function assertPermission(permissions: Permissions, check: (permissions: Permissions) => void): void {
  try {
    check(permissions)
  } catch (error) {
    if (error instanceof ScopeMissingError) throw new Refusal(403, 'ScopeMissingError', error.message)
    throw error
  }
}
