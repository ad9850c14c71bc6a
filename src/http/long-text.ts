/**
 * Long responses for clients that may be slow: they wait in a queue that spills into a file. The runtime would keep all
 * of a response in memory until its client has taken it, and a client may ask for many.
 */
import { perContext, type Context } from '../platform/context.ts'
import { SpillQueue, SpillRoom } from '../platform/files/spill-queue.ts'
import type { Client } from '../base/fair-queue.ts'

/** A shorter text is kept in memory: pages of records and most records are. */
export const LONG_CHARS = 256 * 1024
/** Beyond that, responses of those who have most of it break off. */
const maxQueued = { memoryBytes: 32 * 1024 ** 2, fileBytes: 1024 ** 3 }
/** The runtime keeps a piece that its client has not taken. */
const PIECE_BYTES = 64 * 1024

const rooms = perContext(() => new SpillRoom(maxQueued))

/** The response, whose body is read at once and sent at the speed of the client. */
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
