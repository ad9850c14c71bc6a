/** Who reads the event stream of this process, and who has lately stopped, for operators. */
import type { Exchange } from '../../../http/endpoint.ts'
import { perContext } from '../../../platform/context.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

const MAX_FORMER = 20
const MAX_PROGRAM_CHARS = 200

export interface Subscriber {
  address: string
  /** The `User-Agent` header, as the client chose it; null without one. */
  program: string | null
  since: Millis
  /** Number of the last event that was sent; null before the first. */
  seq: number | null
  /** Null while it is connected. */
  leftAt: Millis | null
}

export interface SubscriberList {
  here: ReadonlySet<Subscriber>
  /** The subscribers that left last, oldest first. */
  former: readonly Subscriber[]
}

const lists = perContext(() => ({ here: new Set<Subscriber>(), former: new Array<Subscriber>() }))

export const subscribersOf = (ctx: Parameters<typeof lists>[0]): SubscriberList => lists(ctx)

/** Adds a subscriber. Returns its entry, which the caller keeps up to date, and the function that takes it off. */
export function listSubscriber({ ctx, ip, request }: Pick<Exchange, 'ctx' | 'ip' | 'request'>) {
  const { here, former } = lists(ctx)
  const program = request.headers.get('user-agent')?.slice(0, MAX_PROGRAM_CHARS) ?? null
  const subscriber: Subscriber = { address: ip, program, since: ctx.clock.now(), seq: null, leftAt: null }
  here.add(subscriber)
  const leave = () => {
    here.delete(subscriber)
    subscriber.leftAt = ctx.clock.now()
    former.push(subscriber)
    if (former.length > MAX_FORMER) former.shift()
  }
  return { subscriber, leave }
}
