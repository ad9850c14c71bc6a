/**
 * Names for the consent page: the handles of accounts whose spaces an app asks for, and the names that authors give to
 * types of spaces.
 *
 * Both are looked up at servers that strangers choose. The page therefore waits only for a moment, and shows a DID or
 * an NSID in place of a name that is not known by then. Look-ups continue in the background and are cached, for when
 * the page is shown again.
 */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import type { Did, Handle, Nsid } from '../../../protocol/identifiers.ts'
import { grantsOf, type ExpandedScope } from '../../../protocol/scopes.ts'
import { parseSpaceScope } from '../../../protocol/space-scopes.ts'
import type { SpaceTypeName } from '../../../protocol/space-type-name.ts'
import { verifiedHandle } from '../../identity/identity/identity.ts'
import type { SpaceNames } from '../scope-words/scope-words.ts'
import { spaceDeclaration } from './permission-sets.ts'

/** Most authorities, and most types, that are looked up for a page. The others are shown without names. */
const MAX_NAMED = 5
const WAIT_MILLIS = 1000
/** Look-ups of handles that run at once, for all pages. */
const MAX_RUNNING = 16
const MAX_KEPT = 1000
const KEPT_MILLIS = 10 * MINUTE_MILLIS

const state = perContext(() => ({
  kept: new BoundedCache<{ handle: Handle | null; until: number }>(MAX_KEPT),
  running: new SingleFlight<Did, Handle | null>(),
}))

const noNames: SpaceNames = { handles: new Map(), types: new Map() }

/** Returns the names that are known within a moment. Looks nothing up if no scope is for spaces. */
export async function spaceNamesIn(ctx: Context, scopes: readonly ExpandedScope[]): Promise<SpaceNames> {
  const ofSpaces = ctx.config.spaces.enabled ? grantsOf(scopes).flatMap((scope) => parseSpaceScope(scope) ?? []) : []
  if (ofSpaces.length === 0) return noNames
  const authorities = new Set(ofSpaces.flatMap(({ authority }) => (isNamed(authority) ? [authority] : [])))
  const named = new Set(ofSpaces.flatMap(({ type }) => (type === '*' ? [] : [type])))
  const handles = new Map<Did, Handle>()
  const types = new Map<Nsid, SpaceTypeName>()
  const { promise: moment, resolve: pass } = Promise.withResolvers<void>()
  const timer = setTimeout(pass, WAIT_MILLIS)
  // If a look-up fails, the page has no name, and the log has the reason.
  ctx.background.run('look-up of names of spaces', () =>
    Promise.all([
      ...[...authorities].slice(0, MAX_NAMED).map(async (did) => {
        const handle = await handleOf(ctx, did)
        if (handle !== null) handles.set(did, handle)
      }),
      ...[...named].slice(0, MAX_NAMED).map(async (type) => {
        const declaration = await spaceDeclaration(ctx, type)
        if (declaration !== null) types.set(type, declaration.name)
      }),
    ]).finally(pass),
  )
  await moment
  clearTimeout(timer)
  return { handles: new Map(handles), types: new Map(types) }
}

const isNamed = (authority: string): authority is Did => authority !== '*' && authority !== 'self'

async function handleOf(ctx: Context, did: Did): Promise<Handle | null> {
  const { kept, running } = state(ctx)
  const known = kept.get(did)
  if (known !== undefined && known.until > ctx.clock.monotonic()) return known.handle
  if (running.running(did) === undefined && running.size >= MAX_RUNNING) return null
  return running.run(did, async () => {
    const handle = await verifiedHandle(ctx, did).catch((error: unknown) => {
      if (error instanceof LookupsFull) return null
      throw error
    })
    kept.set(did, { handle, until: ctx.clock.monotonic() + (handle === null ? MINUTE_MILLIS : KEPT_MILLIS) })
    return handle
  })
}
