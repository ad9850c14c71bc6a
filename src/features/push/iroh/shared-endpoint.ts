/**
 * The QUIC endpoint of servers that share a database. They have one key, so peers take them for one endpoint. Two
 * endpoints at a time would displace each other, and peers would reach only one of them. A lease says which server has
 * the endpoint.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import type { Cluster, Lease } from '../../../platform/database/database.ts'
import type { Log } from '../../../platform/running/log.ts'

/** A server with `iroh.enabled = false` does not take this lease. */
export const ENDPOINT_LEASE = 'iroh endpoint'

interface Endpoint {
  close(): Promise<void>
}

interface Options<E extends Endpoint> {
  cluster: Cluster
  log: Log
  open(): Promise<E>
  /** Throws if an endpoint cannot be opened here. Called at the start if another server has the endpoint. */
  rehearse(): Promise<void>
  /** Called with the endpoint when this server opens it, and with null when this server gives it up. */
  hold(endpoint: E | null): void
}

/**
 * Open the endpoint whenever this server gets the lease. Resolves when the endpoint is open here, or is at another
 * server. Throws `OperatorError` if it cannot be opened. Returns the function that gives it up.
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
  // While this server has the lease, `whileHolding` does not get it again.
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
