/**
 * Long responses wait for slow clients in a queue that spills into a file. The runtime would keep a whole response in
 * memory until its client has read it, and one client may request many.
 */
import { perContext, type Context } from '../platform/context.ts'
import { SpillQueue, SpillRoom } from '../platform/files/spill-queue.ts'
import type { Client } from '../base/fair-queue.ts'

/** Shorter texts stay in memory, as nearly all records and pages do. */
export const LONG_CHARS = 256 * 1024
/** Beyond this, responses of the clients that use most of it are aborted. */
const maxQueued = { memoryBytes: 32 * 1024 ** 2, fileBytes: 1024 ** 3 }
/** Size of the pieces that are passed to the runtime, which keeps one in memory until the client has read it. */
const PIECE_BYTES = 64 * 1024

const rooms = perContext(() => new SpillRoom(maxQueued))

/** Returns the response with a body that is read at once, and sent at the speed of the client. */
export function queued(exchange: { ctx: Context; client: Client }, response: Response): Response {
  const { body, status, headers } = response
  if (body === null) return response
  const { ctx, client } = exchange
  const queue = new SpillQueue({ dir: ctx.config.dataDir, room: rooms(ctx), owner: client.network })
  const stream = queue.stream()
  void fill(queue, body)
  return new Response(stream, { status, headers })
}

async function fill(queue: SpillQueue, body: ReadableStream<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of body)
      for (let start = 0; start < chunk.length; start += PIECE_BYTES)
        queue.push(chunk.slice(start, start + PIECE_BYTES))
    queue.end()
  } catch (error) {
    queue.fail(error)
  }
}
