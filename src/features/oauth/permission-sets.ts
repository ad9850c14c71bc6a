/** Permission sets, which apps name by `include:` and whose authors publish them as lexicons. */
import type { LexiconPermissionSet } from '@atproto/oauth-scopes'
import { OAuthError } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { parseNsid } from '../../protocol/identifiers.ts'
import { expandScopes, type Expansion, grantsOf, isInclude } from '../../protocol/scopes.ts'
import { resolveLexicon } from '../published-lexicons/published-lexicons.ts'

async function permissionSet(ctx: Context, name: string): Promise<LexiconPermissionSet | null> {
  const nsid = parseNsid(name)
  const lexicon = nsid && (await resolveLexicon(ctx, nsid))
  const main = lexicon?.defs.main as Partial<LexiconPermissionSet> | undefined
  return main?.type === 'permission-set' && Array.isArray(main.permissions) ? (main as LexiconPermissionSet) : null
}

export const expanded = (ctx: Context, scopes: readonly string[]): Promise<Expansion> =>
  expandScopes(scopes, (nsid) => permissionSet(ctx, nsid))

/** What granted scopes come to now, separated by spaces. A set that cannot be found at the moment is no reason to sign anybody out. */
export async function effectiveScope(ctx: Context, scope: string, { isFixed }: { isFixed: boolean }): Promise<string> {
  const scopes = scope.split(' ')
  if (isFixed || !scopes.some(isInclude)) return scope
  const expansion = await expanded(ctx, scopes)
  if (!expansion.ok) throw new OAuthError(503, 'temporarily_unavailable', expansion.reason)
  return grantsOf(expansion.scopes).join(' ')
}
