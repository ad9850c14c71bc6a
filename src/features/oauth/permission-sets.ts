/** Permission sets, which apps name by `include:` and whose authors publish them as lexicons. */
import type { LexiconPermissionSet } from '@atproto/oauth-scopes'
import { OAuthError } from '../../http/errors.ts'
import { perContext, type Context } from '../../platform/context.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { expandScopes, type Expansion, grantsOf, isInclude } from '../../protocol/scopes.ts'

const FRESH_MILLIS = 24 * 3600_000
const FAULT_MILLIS = 60_000
const MAX_SETS = 4096

interface Kept {
  set: LexiconPermissionSet | null
  /** When to look again. Until something better is found, the last good set counts. */
  until: Millis
}

/** The lexicon that its author publishes under that name, or null. */
const lexiconOf = async (_ctx: Context, _nsid: string): Promise<unknown> => null

const keptSets = perContext(() => new Map<string, Kept>())

async function permissionSet(ctx: Context, nsid: string): Promise<LexiconPermissionSet | null> {
  const sets = keptSets(ctx)
  const now = ctx.clock.now()
  const kept = sets.get(nsid)
  if (kept && kept.until > now) return kept.set
  const found = permissionSetOf(await lexiconOf(ctx, nsid))
  sets.delete(nsid)
  if (sets.size >= MAX_SETS) sets.delete(sets.keys().next().value!)
  const next = found ? { set: found, until: now + FRESH_MILLIS } : { set: kept?.set ?? null, until: now + FAULT_MILLIS }
  sets.set(nsid, next)
  return next.set
}

/** The main definition of a lexicon, when it is a permission set. */
function permissionSetOf(lexicon: unknown): LexiconPermissionSet | null {
  const main = (lexicon as { defs?: { main?: Partial<LexiconPermissionSet> } } | null)?.defs?.main
  return main?.type === 'permission-set' && Array.isArray(main.permissions) ? (main as LexiconPermissionSet) : null
}

export const expanded = (ctx: Context, scopes: readonly string[]): Promise<Expansion> => expandScopes(scopes, (nsid) => permissionSet(ctx, nsid))

/** What granted scopes come to now, separated by spaces. A set that cannot be found at the moment is no reason to sign anybody out. */
export async function effectiveScope(ctx: Context, scope: string, { isFixed }: { isFixed: boolean }): Promise<string> {
  const scopes = scope.split(' ')
  if (isFixed || !scopes.some(isInclude)) return scope
  const expansion = await expanded(ctx, scopes)
  if (!expansion.ok) throw new OAuthError(503, 'temporarily_unavailable', expansion.reason)
  return grantsOf(expansion.scopes).join(' ')
}
