/**
 * The request on whose behalf code runs, available without passing it through every call. Log lines include its id, and
 * shared resources limit each client to its share. Nothing else may depend on it.
 *
 * Work that outlives the request that started it runs in `outsideRequests`, so that its log lines do not include the id
 * of that request.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** The fields may be getters, which compute a value only when it is read. */
interface Origin {
  readonly requestId: string
  /** The key that rate limits charge. */
  readonly client: string
}

const scope = new AsyncLocalStorage<Origin>()

/** Run `work` on behalf of a request. */
export const inRequest = <Arguments extends unknown[], T>(request: Origin, work: (...given: Arguments) => T, ...given: Arguments): T =>
  scope.run(request, work, ...given)

export const outsideRequests = <T>(work: () => T): T => scope.exit(work)

/** Returns the id of the current request, or undefined outside requests. */
export const requestIdHere = (): string | undefined => scope.getStore()?.requestId

/** Returns the client of the current request, or undefined outside requests. */
export const clientHere = (): string | undefined => scope.getStore()?.client
