/**
 * Ends a forwarded request whose caller has signed out or was taken down, or is an agent or a delegate that may no
 * longer act. A forwarded request may take most of a minute. Agents and delegates are revalidated for every piece of
 * the body, so that nothing passes after their access has ended. Sessions are revalidated once a second, so that most
 * requests cost no look-up at all.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { discardBody } from '../../../platform/network/outbound.ts'
import { revalidateWithAccount } from '../../access/auth/auth.ts'
import { isRecorded, revalidationOf, type AccessCaller } from '../../access/callers/callers.ts'

/** How long a session that was revalidated counts as valid. */
const VALID_MILLIS = 1000

/** Throws a `Refusal` if the caller may no longer act. */
type RevalidateHere = () => Promise<void>

/** Returns how to revalidate a caller that was looked up just now. `appeals`: also one whose account is taken down. */
export function revalidator(call: Exchange, caller: AccessCaller, { appeals }: { appeals: boolean }): RevalidateHere {
  const { ctx } = call
  const revalidation = revalidationOf(ctx, caller)
  const revalidate = () =>
    revalidation === null
      ? call.revalidate(ctx.db)
      : revalidateWithAccount(ctx.db, revalidation, { refusesTakendown: !appeals })
  if (isRecorded(caller)) return revalidate
  let validAt = ctx.clock.monotonic()
  return async () => {
    const now = ctx.clock.monotonic()
    if (now - validAt < VALID_MILLIS) return
    validAt = now
    await revalidate()
  }
}

/** Returns the body, revalidating the caller before each piece. Anything but a stream is sent at once. */
export const revalidatedBody = <Body>(
  body: Body,
  revalidate: RevalidateHere | null,
): Body | ReadableStream<Uint8Array> =>
  revalidate !== null && body instanceof ReadableStream
    ? revalidatedStream(body as ReadableStream<Uint8Array>, revalidate)
    : body

/** If the caller may no longer act, cancels the response and throws. */
export async function refusedBy(response: Response, revalidate: RevalidateHere): Promise<void> {
  try {
    await revalidate()
  } catch (error) {
    await discardBody(response)
    throw error
  }
}

function revalidatedStream(source: ReadableStream<Uint8Array>, revalidate: RevalidateHere): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        await revalidate()
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
