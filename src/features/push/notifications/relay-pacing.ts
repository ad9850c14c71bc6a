/** The budgets that a relay grants by default. The server stays within them, because a refusal would lose a push. */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { TokenBucket } from '../../../base/token-bucket.ts'
import type { Clock } from '../../../platform/running/clock.ts'

const budgets = {
  registrations: { size: 10, perHour: 100 },
  pushes: { size: 50, perHour: 1000 },
  pushesPerHandle: { size: 10, perHour: 60 },
} as const

/** Handles whose budget is remembered. Any other handle has its full budget. */
const MAX_HANDLES = 10_000

const bucketOf = ({ size, perHour }: { size: number; perHour: number }) => new TokenBucket(size, perHour)

export class RelayPacing {
  readonly registrations = bucketOf(budgets.registrations)
  readonly pushes = bucketOf(budgets.pushes)
  readonly #handles = new BoundedCache<TokenBucket>(MAX_HANDLES)

  constructor(readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Take one push from the budget of a handle. Returns false if the budget is used up. */
  takeOf(handle: string): boolean {
    const bucket = this.#handles.get(handle) ?? bucketOf(budgets.pushesPerHandle)
    this.#handles.set(handle, bucket)
    return bucket.take(this.clock.monotonic())
  }
}
