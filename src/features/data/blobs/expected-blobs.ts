/**
 * How many blobs the public records of an account refer to, for programs that ask again and again while an account
 * moves. Counting half a million takes 0.4 s of processor time, so a large count is cached for a while.
 */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { countReferencedCids } from './reference-store.ts'

/** The smallest count that is cached, and for how long. */
const MANY = 10_000
const KEPT_MILLIS = MINUTE_MILLIS
/** Accounts whose counts are cached. */
const MAX_ACCOUNTS = 1000

interface Counted {
  count: number
  /** On the monotonic clock. */
  at: number
}

const kept = perContext(() => ({
  counts: new BoundedCache<Counted, Did>(MAX_ACCOUNTS),
  counting: new SingleFlight<Did, number>(),
}))

export async function expectedBlobs(ctx: Context, did: Did): Promise<number> {
  const { counts, counting } = kept(ctx)
  const before = counts.get(did)
  if (before === undefined) return count(ctx, did)
  if (ctx.clock.monotonic() - before.at < KEPT_MILLIS) return before.count
  return counting.run(did, () => count(ctx, did))
}

async function count(ctx: Context, did: Did): Promise<number> {
  const { counts } = kept(ctx)
  const found = await countReferencedCids(ctx.db, did)
  if (found >= MANY) counts.set(did, { count: found, at: ctx.clock.monotonic() })
  else counts.delete(did)
  return found
}
