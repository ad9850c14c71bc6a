/** Counts the requests that this process refused because of rate limits in the last hour. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { perContext } from '../../../platform/context.ts'

/** The counter at an instant of the monotonic clock. */
interface Sample {
  at: number
  total: number
}

/** A sample for each check within the last hour. */
const samplesOf = perContext((ctx): Sample[] => [{ at: ctx.startedAt, total: 0 }])

/** Call it at every check: it counts since the first check within the last hour. */
export function refusalsInLastHour(ctx: Parameters<typeof samplesOf>[0]): number {
  const samples = samplesOf(ctx)
  const now = ctx.clock.monotonic()
  const total = ctx.metrics.total('rate_limit_rejections_total')
  const kept = samples.filter(({ at }) => now - at <= HOUR_MILLIS)
  samples.splice(0, samples.length, ...kept, { at: now, total })
  return total - samples[0]!.total
}
