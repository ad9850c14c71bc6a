/**
 * Permission sets. Apps request one with the scope `include:<nsid>`; its author publishes it as a lexicon.
 *
 * Source: atproto "Permissions", "Permission Sets".
 */
import type { LexiconPermissionSet } from '@atproto/oauth-scopes'
import { OAuthError } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { parseNsid, type Did, type Nsid } from '../../../protocol/identifiers.ts'
import {
  expandScopes,
  type Expansion,
  grantsOf,
  isForSpaces,
  isPublishedElsewhere,
  MAX_SCOPES,
  scopeFor,
  type SpaceDeclaration,
} from '../../../protocol/scopes.ts'
import { spaceTypeName } from '../../../protocol/space-type-name.ts'
import { sharedScopes } from '../../../protocol/shared-scopes.ts'
import { resolveLexicon, tooLarge } from '../../data/published-lexicons/published-lexicons.ts'
import { fitsAccessToken, MAX_ACCESS_TOKEN_CHARS } from '../tokens/tokens.ts'

/**
 * Returns the permission set that is published as `name`; null if there is none or it cannot be fetched, and a text
 * that says why if it is too large.
 */
async function permissionSet(ctx: Context, name: string): Promise<LexiconPermissionSet | string | null> {
  const nsid = parseNsid(name)
  if (nsid === null) return null
  const resolution = await resolveLexicon(ctx, nsid)
  if (!resolution.ok) return resolution.excess === null ? null : tooLarge(nsid, resolution.excess)
  const main = resolution.document.defs['main'] as Partial<LexiconPermissionSet> | undefined
  return main?.type === 'permission-set' && Array.isArray(main.permissions) ? (main as LexiconPermissionSet) : null
}

/** Returns the declaration of a type of spaces; null if there is none, or it cannot be fetched. */
export async function spaceDeclaration(ctx: Context, type: Nsid): Promise<SpaceDeclaration | null> {
  const resolution = await resolveLexicon(ctx, type)
  const main = resolution.ok ? resolution.document.defs['main'] : null
  if (main?.['type'] !== 'space') return null
  const { collections } = main as { collections: string[] }
  return { name: spaceTypeName(main), collections: collections.flatMap((collection) => parseNsid(collection) ?? []) }
}

/**
 * Expand permission sets into their permissions. Returns a reason instead if a set cannot be found, or if there are
 * more permissions than can be granted or than fit an access token of the client.
 */
export async function expanded(ctx: Context, clientId: string, scopes: readonly string[]): Promise<Expansion> {
  const spaceTypes = ctx.config.spaces.enabled ? (type: Nsid) => spaceDeclaration(ctx, type) : null
  const expansion = await expandScopes(scopes, (nsid) => permissionSet(ctx, nsid), spaceTypes)
  if (!expansion.ok || fitsAccessToken(ctx, { clientId, scope: grantsOf(expansion.scopes).join(' ') })) return expansion
  return { ok: false, fault: 'too-many', reason: TOO_LONG }
}

/**
 * Returns what both the scopes, expanded, and a text of other scopes allow; or a reason, as `expanded` does. The result
 * can be longer than either.
 */
export async function expandedWithin(
  ctx: Context,
  clientId: string,
  scopes: readonly string[],
  allowed: string,
): Promise<{ ok: true; scopes: string[] } | { ok: false; reason: string }> {
  const expansion = await expanded(ctx, clientId, scopes)
  if (!expansion.ok) return expansion
  const common = sharedScopes(grantsOf(expansion.scopes), allowed.split(' '))
  return common !== null && common.length <= MAX_SCOPES && fitsAccessToken(ctx, { clientId, scope: common.join(' ') })
    ? { ok: true, scopes: common }
    : { ok: false, reason: TOO_LONG }
}

const TOO_LONG = `the permissions would make an access token longer than ${MAX_ACCESS_TOKEN_CHARS} characters`

/**
 * Returns the granted scopes with their permission sets expanded as published now, separated by spaces. `isFixed`: the
 * scopes were expanded when they were granted. Throws `temporarily_unavailable` (503) if a
 * permission set cannot be found, so that the client tries again and its session continues. Throws `invalid_scope` if a
 * set has grown beyond what can be granted.
 */
export async function effectiveScope(
  ctx: Context,
  { did, clientId, scope, isFixed }: { did: Did; clientId: string; scope: string; isFixed: boolean },
): Promise<string> {
  // Leave out scopes for spaces while spaces are switched off: a grant outlives the switch.
  const scopes = scope.split(' ').filter((one) => ctx.config.spaces.enabled || !isForSpaces(one))
  const granted = (values: readonly string[]) => {
    const named = values.map((value) => scopeFor(did, value)).join(' ')
    if (named === scope || fitsAccessToken(ctx, { clientId, scope: named })) return named
    throw new OAuthError(400, 'invalid_scope', TOO_LONG)
  }
  if (isFixed || !scopes.some(isPublishedElsewhere)) return granted(scopes)
  const expansion = await expanded(ctx, clientId, scopes)
  if (expansion.ok) return granted(grantsOf(expansion.scopes))
  throw expansion.fault === 'unresolved'
    ? new OAuthError(503, 'temporarily_unavailable', expansion.reason)
    : new OAuthError(400, 'invalid_scope', expansion.reason)
}
