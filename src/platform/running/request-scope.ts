/**
 * The request that work is done for, without everything that it calls being told: lines of the log write its id, and
 * what all clients share gives each its part. Nothing else may depend on it.
 *
 * What outlives the request that happened to start it runs `outsideRequests`, so that its lines do not name that one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** What is not asked for is not worked out. */
interface Origin {
  readonly requestId: string
  /** Whom limits count it for. */
  readonly client: string
}

const scope = new AsyncLocalStorage<Origin>()

export const inRequest = <Arguments extends unknown[], T>(request: Origin, work: (...given: Arguments) => T, ...given: Arguments): T =>
  scope.run(request, work, ...given)

export const outsideRequests = <T>(work: () => T): T => scope.exit(work)

/** Undefined outside of requests. */
export const requestIdHere = (): string | undefined => scope.getStore()?.requestId

/** Undefined outside of requests. */
export const clientHere = (): string | undefined => scope.getStore()?.client
