/**
 * The endpoint of servers that share a database. They have one key, so to their peers they are one: two endpoints at a
 * time would take each other's place, and only one of them would be reached. A lease says which server has it.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import type { Cluster, Lease } from '../../../platform/database/database.ts'
import type { Log } from '../../../platform/running/log.ts'

/** The lease is not taken where `iroh.enabled` is false. */
export const ENDPOINT_LEASE = 'iroh endpoint'

interface Endpoint {
  close(): Promise<void>
}

interface Options<E extends Endpoint> {
  cluster: Cluster
  log: Log
  open(): Promise<E>
  /** Throws if an endpoint cannot be opened here. Called at the start if another server has it. */
  rehearse(): Promise<void>
  /** Called with the endpoint when this server has it, and with null when it no longer has. */
  hold(endpoint: E | null): void
}

/**
 * Have the endpoint whenever this server gets the lease. Resolves when it is open, or at another server. Throws
 * `OperatorError` if it cannot be opened. Returns the function that gives it up.
 */
export async function shareEndpoint<E extends Endpoint>({
  cluster,
  log,
  open,
  rehearse,
  hold,
}: Options<E>): Promise<() => Promise<void>> {
  /** Resolves when the last endpoint of this server is closed. */
  let closed = Promise.resolve()
  const openWhile = async (lease: Lease) => {
    await closed
    const endpoint = await open()
    hold(endpoint)
    closed = lossOf(lease).then(() => {
      hold(null)
      return endpoint.close()
    })
  }
  const first = await cluster.take(ENDPOINT_LEASE)
  try {
    await (first === null ? rehearse() : openWhile(first))
  } catch (error) {
    await first?.release()
    throw error
  }
  // As long as this server has the lease it does not get it again.
  const end = cluster.whileHolding(
    ENDPOINT_LEASE,
    async (lease) => {
      await openWhile(lease)
      await closed
    },
    (error) =>
      log.error('could not open the QUIC endpoint', {
        reason: error instanceof OperatorError ? error.message : String(error),
      }),
  )
  return async () => {
    await end()
    await first?.release()
    await closed
  }
}

const lossOf = ({ lost }: Lease): Promise<void> =>
  new Promise((resolve) => {
    if (lost.aborted) resolve()
    else lost.addEventListener('abort', () => resolve(), { once: true })
  })
