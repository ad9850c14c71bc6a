/** What operators see of the relay and its queue. */
import type { Context } from '../../../platform/context.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { handleStep } from './handle-steps.ts'
import { pushStep } from './push-steps.ts'
import { relayOf } from './relay.ts'

interface QueueStatus {
  /** Unfinished steps, including the one in progress. */
  depth: number
  oldestAgeSeconds: number | null
}

/** Returns null if no relay is configured. */
async function queueStatus({ config, clock, steps }: Context): Promise<QueueStatus | null> {
  if (config.notifications.relay === null) return null
  const queues = (await steps.summaries()).filter(({ kind }) => kind === handleStep.name || kind === pushStep.name)
  const oldestAt = Math.min(...queues.map((queue) => queue.oldestAt ?? Infinity))
  return {
    depth: queues.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestAgeSeconds: oldestAt === Infinity ? null : Math.max(0, Math.floor((clock.now() - oldestAt) / 1000)),
  }
}

/** Returns the state of the relay; null if none is configured. */
export async function relayStatus(ctx: Context) {
  const [relay, queue] = [relayOf(ctx), await queueStatus(ctx)]
  if (relay === null || queue === null) return null
  const { isConnected, answeredAt, failure } = relay.client.state
  return {
    relay: ctx.config.notifications.relay,
    connected: isConnected,
    lastAnswerAt: wireTimeOrNull(answeredAt),
    failingSince: failure === null ? null : wireTime(failure.since),
    lastError: failure?.reason ?? null,
    queue,
  }
}

export function declareQueueGauges(ctx: Context): void {
  const { metrics } = ctx
  metrics.gauge(
    'notify_queue_depth',
    'Pushes and registrations that the push relay has not dealt with yet; absent without a relay',
    async () => (await queueStatus(ctx))?.depth ?? null,
  )
  metrics.gauge(
    'notify_queue_oldest_age_seconds',
    'Age of the oldest of them; absent if there is none',
    async () => (await queueStatus(ctx))?.oldestAgeSeconds ?? null,
  )
}
