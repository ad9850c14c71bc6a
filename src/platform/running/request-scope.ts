/**
 * The request on whose behalf code runs, available without passing it through every call. Log lines include its id,
 * shared resources limit each client to its share, and `LoopWatch` learns when it continues. Nothing else may depend on
 * it.
 *
 * Work that outlives the request that started it runs in `outsideRequests`, so that its log lines do not include the id
 * of that request.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Client } from '../../base/fair-queue.ts'

/**
 * A request, or work that the server does by itself. The fields may be getters, which compute a value only when it is
 * read.
 */
interface Origin {
  readonly requestId?: string
  readonly client?: Client
  /** Called when the work begins, or continues after a wait. */
  resumed(): void
}

const scope = new AsyncLocalStorage<Origin>()

/** Runs `work` on behalf of a request, or of work that the server does by itself. */
export function inRequest<Arguments extends unknown[], T>(
  origin: Origin,
  work: (...given: Arguments) => T,
  ...given: Arguments
): T {
  origin.resumed()
  return scope.run(origin, work, ...given)
}

export const outsideRequests = <T>(work: () => T): T => scope.exit(work)

/** Returns the id of the current request, or undefined outside requests. */
export const requestIdHere = (): string | undefined => scope.getStore()?.requestId

/** The client of work that the server does for itself, which takes turns like any other client. */
const server: Client = { address: '', network: '', provider: '' }

/** A client whose address is determined when it is first read, which takes longer than many requests. */
class ClientOf implements Client {
  constructor(readonly origin: Origin) {}

  get address(): string {
    return (this.origin.client ?? server).address
  }

  get network(): string {
    return (this.origin.client ?? server).network
  }

  get provider(): string {
    return (this.origin.client ?? server).provider
  }
}

/** Returns the client of the current request; outside requests, the server itself. Read it before the request ends. */
export function clientHere(): Client {
  const origin = scope.getStore()
  return origin === undefined ? server : new ClientOf(origin)
}

/** Call it where code continues after it has waited for a socket, a disk or another thread. */
export const resumed = (): void => scope.getStore()?.resumed()

/** Returns `work` as a function that always runs on behalf of the current request. */
export function onBehalf<Arguments extends unknown[], T>(work: (...given: Arguments) => T): (...given: Arguments) => T {
  const origin = scope.getStore()
  return origin === undefined ? work : (...given) => inRequest(origin, work, ...given)
}
