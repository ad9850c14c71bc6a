/** The stream as a real consumer follows it: every signature, tree and operation checked by the reference library. */
import { ensureAtprotoKey, type DidDocument, type IdResolver } from '@atproto/identity'
import { Firehose, MemoryRunner, type Event } from '@atproto/sync'

export class Consumer {
  readonly events: Event[] = []
  readonly errors: Error[] = []
  readonly runner: MemoryRunner
  readonly #firehose: Firehose
  #next = Promise.withResolvers<void>()

  /** `plcUrl`: the directory that knows the accounts; that of the service itself when it keeps one. */
  constructor(
    serviceUrl: string,
    { startCursor, plcUrl = serviceUrl }: { startCursor?: number; plcUrl?: string } = {},
  ) {
    this.runner = new MemoryRunner({ startCursor })
    this.#firehose = new Firehose({
      service: serviceUrl.replace('http', 'ws'),
      idResolver: resolverAt(plcUrl) as unknown as IdResolver,
      runner: this.runner,
      unauthenticatedHandles: true,
      onError: (error) => this.errors.push(error),
      handleEvent: (event) => {
        this.events.push(event)
        this.#next.resolve()
        this.#next = Promise.withResolvers()
      },
    })
    void this.#firehose.start()
  }

  /** Resolves with all events once they are as wanted. Among many events, `heard` is faster. */
  async until(condition: (events: Event[]) => boolean): Promise<Event[]> {
    while (!condition(this.events)) await this.#next.promise
    return this.events
  }

  /** Resolves with the first `count` events that are wanted. Each event is looked at once. */
  async heard(isWanted: (event: Event) => boolean, count = 1): Promise<Event[]> {
    const wanted: Event[] = []
    for (let at = 0; wanted.length < count; at++) {
      if (at === this.events.length) await this.#next.promise
      const event = this.events[at]!
      if (isWanted(event)) wanted.push(event)
    }
    return wanted
  }

  /** What the library could not read or verify. */
  get faults(): Error[] {
    return this.errors.filter(({ name }) => name === 'FirehoseValidationError' || name === 'FirehoseParseError')
  }

  async stop(): Promise<void> {
    await this.#firehose.destroy()
    await this.runner.destroy()
  }
}

/** The library's own resolvers ask for another runtime before they start. */
export function resolverAt(plcUrl: string) {
  const resolve = async (did: string) => (await fetch(`${plcUrl}/${did}`)).json() as Promise<DidDocument>
  return { did: { resolve, resolveAtprotoKey: async (did: string) => ensureAtprotoKey(await resolve(did)) } }
}
