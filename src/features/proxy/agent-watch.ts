/**
 * Ends what is forwarded for an agent once the agent may no longer act. A forwarded request may take most of a minute;
 * the agent is looked up for every piece that passes, so that nothing passes after the agent was ended.
 */

/** Throws a `Refusal` if the agent was ended. */
export type Watch = () => Promise<void>

/** Returns the body with a look at the agent before each piece. Anything but a stream is sent at once and needs none. */
export const watched = <Body>(body: Body, watch: Watch | null): Body | ReadableStream<Uint8Array> =>
  watch !== null && body instanceof ReadableStream ? watchedStream(body as ReadableStream<Uint8Array>, watch) : body

/** Throws if the agent has been ended by now; the body of the returned response fails if it is ended later. */
export async function watchedResponse(response: Response, watch: Watch): Promise<Response> {
  try {
    await watch()
  } catch (error) {
    await response.body?.cancel()
    throw error
  }
  const { status, statusText, headers } = response
  return response.body === null ? response : new Response(watchedStream(response.body, watch), { status, statusText, headers })
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
