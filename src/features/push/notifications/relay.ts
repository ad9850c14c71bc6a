/** The push relay that the operator chose: the client that talks to it, and the pace at which it does. */
import { perContext, type Context } from '../../../platform/context.ts'
import { StepPostponed } from '../../../platform/running/steps.ts'
import { isEndpointElsewhere, peersOf } from '../iroh/iroh.ts'
import { RelayClient, relayTiming, RelayWait } from './relay-client.ts'
import { RelayPacing } from './relay-pacing.ts'

export interface Relay {
  client: RelayClient
  pacing: RelayPacing
}

/** Returns null if no relay is configured. */
export const relayOf = perContext((ctx: Context): Relay | null => {
  const { config, clock, log } = ctx
  const { relay: nodeId, relayAddresses: addresses, enrollmentCode } = config.notifications
  if (nodeId === null) return null
  const relay = { nodeId, addresses }
  return {
    client: new RelayClient({ peers: () => peersOf(ctx), relay, enrollmentCode, clock, log, timing: relayTiming }),
    pacing: new RelayPacing(clock),
  }
})

/**
 * Whether this server performs the steps for the relay. In a cluster, only the server that has the endpoint can talk to
 * it.
 */
export const isAtRelay = (ctx: Context): boolean => !isEndpointElsewhere(ctx)

/** Run the work of a step with the relay when it is its turn. If the work has to wait, the step is postponed. */
export async function inTurn<T>({ client }: Relay, work: () => Promise<T>): Promise<T> {
  try {
    return await client.alone(work)
  } catch (error) {
    throw error instanceof RelayWait ? new StepPostponed(error.message, error.waitMillis) : error
  }
}
