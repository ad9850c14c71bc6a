/**
 * The request that work is done for, for the lines of the log: whatever a request calls writes its id, without being
 * told. Nothing else may depend on it.
 *
 * What outlives the request that happened to start it runs `outsideRequests`, so that its lines do not name that one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** The id is made when it is asked for. */
interface Identified {
  readonly requestId: string
}

const scope = new AsyncLocalStorage<Identified>()

export const inRequest = <Arguments extends unknown[], T>(request: Identified, work: (...given: Arguments) => T, ...given: Arguments): T => scope.run(request, work, ...given)

export const outsideRequests = <T>(work: () => T): T => scope.exit(work)

/** Undefined outside of requests. */
export const requestIdHere = (): string | undefined => scope.getStore()?.requestId
