/**
 * Permission sets. Apps request one with the scope `include:<nsid>`; its author publishes it as a lexicon.
 *
 * Source: atproto "Permissions", "Permission Sets".
 */
import type { LexiconPermissionSet } from '@atproto/oauth-scopes'
import { OAuthError } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { parseNsid } from '../../protocol/identifiers.ts'
import { expandScopes, type Expansion, grantsOf, isInclude } from '../../protocol/scopes.ts'
import { resolveLexicon } from '../published-lexicons/published-lexicons.ts'

/** Returns the permission set that is published as `name`; null if there is none or it cannot be fetched. */
async function permissionSet(ctx: Context, name: string): Promise<LexiconPermissionSet | null> {
  const nsid = parseNsid(name)
  const lexicon = nsid && (await resolveLexicon(ctx, nsid))
  const main = lexicon?.defs.main as Partial<LexiconPermissionSet> | undefined
  return main?.type === 'permission-set' && Array.isArray(main.permissions) ? (main as LexiconPermissionSet) : null
}

/** Expand permission sets into their permissions. Returns a reason instead if a set cannot be found or there are too many. */
export const expanded = (ctx: Context, scopes: readonly string[]): Promise<Expansion> =>
  expandScopes(scopes, (nsid) => permissionSet(ctx, nsid))

/**
 * Returns the granted scopes with their permission sets expanded as published now, separated by spaces. `isFixed`: the
 * scopes were expanded when they were granted, and are returned unchanged. Throws `temporarily_unavailable` (503) if a
 * permission set cannot be found, so that the client tries again and its session continues.
 */
export async function effectiveScope(ctx: Context, scope: string, { isFixed }: { isFixed: boolean }): Promise<string> {
  const scopes = scope.split(' ')
  if (isFixed || !scopes.some(isInclude)) return scope
  const expansion = await expanded(ctx, scopes)
  if (!expansion.ok) throw new OAuthError(503, 'temporarily_unavailable', expansion.reason)
  return grantsOf(expansion.scopes).join(' ')
}
