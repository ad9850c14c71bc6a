/**
 * Ends what is forwarded for a caller who has signed out, or for an agent that may no longer act. A forwarded request
 * may take most of a minute. An agent is looked up for every piece that passes, so that nothing passes after it was
 * ended; a session once a second, so that most requests cost no look at all.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { isAgent, type AccessCaller } from '../../access/callers/callers.ts'

/** How long a look at a session counts. */
const LOOK_MILLIS = 1000

/** Throws a `Refusal` if the caller has ended. */
export type Watch = () => Promise<void>

/** Watches a caller that was looked up just now. */
export function watchOn(call: Exchange, caller: AccessCaller): Watch {
  const { ctx } = call
  const look = () => call.stillStands(ctx.db)
  if (isAgent(caller)) return look
  let lookedAt = ctx.clock.monotonic()
  return async () => {
    const now = ctx.clock.monotonic()
    if (now - lookedAt < LOOK_MILLIS) return
    lookedAt = now
    await look()
  }
}

/**
 * Returns the body with a look at the caller before each piece. Anything but a stream is sent at once and needs none.
 */
export const watched = <Body>(body: Body, watch: Watch | null): Body | ReadableStream<Uint8Array> =>
  watch !== null && body instanceof ReadableStream ? watchedStream(body as ReadableStream<Uint8Array>, watch) : body

/** Throws if the caller has ended by now; the body of the returned response fails if that happens later. */
export async function watchedResponse(response: Response, watch: Watch): Promise<Response> {
  try {
    await watch()
  } catch (error) {
    await response.body?.cancel()
    throw error
  }
  const { status, statusText, headers } = response
  return response.body === null
    ? response
    : new Response(watchedStream(response.body, watch), { status, statusText, headers })
}

function watchedStream(source: ReadableStream<Uint8Array>, watch: Watch): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        await watch()
        if (value) controller.enqueue(value)
        if (done) controller.close()
      } catch (error) {
        controller.error(error)
        await reader.cancel(error).catch(() => undefined) // it has failed already
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
