/** Enforces the grants of apps, agents and app passwords with scopes. */
import type { RequiredScope } from '../../../http/credential.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden, insufficientScope, Refusal } from '../../../http/errors.ts'
import { scopeGrammar } from '../../../protocol/scope-grammar.ts'
import type { Permissions } from '../../../protocol/scopes.ts'

interface GrantRefusals {
  /** The refusal of an endpoint for which no grant suffices. */
  closed(message: string): Refusal
  /** The refusal of a grant that lacks a scope. The message names the scope. */
  missing(message: string): Refusal
}

const appRefusals: GrantRefusals = {
  closed: forbidden,
  missing: (message) => new Refusal(403, 'ScopeMissingError', message),
}
/** Refusals by credential. Other credentials are refused as apps are. */
const otherRefusals: Readonly<Record<string, GrantRefusals>> = {
  agent: { closed: insufficientScope, missing: insufficientScope },
  scoped: { ...appRefusals, closed: () => forbidden('This app password may not call this endpoint') },
}

/** Returns the refusals for a caller with this credential. */
const grantRefusalsOf = (credential: string): GrantRefusals => otherRefusals[credential] ?? appRefusals

/**
 * Run a check such as `(permissions) => permissions.assertRepo({ collection, action: 'create' })`.
 *
 * Throws `ScopeMissingError`, or for an agent `InsufficientScope`, with the narrowest scope that would satisfy the
 * check. Apps read it, and ask for consent to it.
 */
export function assertPermission(
  permissions: Permissions,
  credential: string,
  check: (permissions: Permissions) => void,
): void {
  try {
    check(permissions)
  } catch (error) {
    if (error instanceof scopeGrammar().ScopeMissingError) throw grantRefusalsOf(credential).missing(error.message)
    throw error
  }
}

/**
 * Throws `Forbidden` if the endpoint takes no grants, and `ScopeMissingError` if this one does not suffice; for an
 * agent, `InsufficientScope` in either case.
 */
export function requireGrant(
  { credential, permissions }: { credential: string; permissions: Permissions },
  grants: NonNullable<RequiredScope['grants']>,
  exchange: Exchange,
): void {
  if (grants === 'any') return
  const { closed } = grantRefusalsOf(credential)
  if (grants === 'refuse') throw closed('OAuth credentials are not supported for this endpoint')
  if (typeof grants === 'object') throw closed(grants.refuse)
  assertPermission(permissions, credential, (granted) => grants(granted, exchange))
}
