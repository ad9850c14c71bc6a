/**
 * Bounds the bytes of an account's unfinished uploads. These bytes take room on the disk, but count toward the quota of
 * the account only once the upload has ended.
 */
import { serviceUnavailable } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { RoomForCommits } from '../../../platform/files/free-space.ts'
import type { Did } from '../../../protocol/identifiers.ts'

/** Most bytes of all unfinished uploads of an account, in multiples of the largest blob. */
const MAX_BLOBS = 20
const RETRY_AFTER_SECS = 10

const sums = perContext(() => new Map<Did, number>())
const disk = perContext(({ config }) => new RoomForCommits(config.dataDir))
const notNow = (message: string) => serviceUnavailable(message, RETRY_AFTER_SECS)

export class UnfinishedUpload implements Disposable {
  #bytes = 0

  constructor(
    readonly ctx: Context,
    readonly did: Did,
  ) {}

  /**
   * Passes on the chunks that arrive. Refuses with `ServiceUnavailable` if the account is sending too much at a time,
   * or the disk has only its reserve left.
   */
  async *counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const most = MAX_BLOBS * this.ctx.config.blobs.maxBlobSize
    for await (const chunk of chunks) {
      if (this.#add(chunk.byteLength) > most) throw notNow('Too many of your uploads are already running')
      if (!disk(this.ctx).isLeft(chunk.byteLength)) throw notNow('The server has no room for uploads at the moment')
      yield chunk
    }
  }

  #add(bytes: number): number {
    const sum = (sums(this.ctx).get(this.did) ?? 0) + bytes
    this.#bytes += bytes
    if (sum > 0) sums(this.ctx).set(this.did, sum)
    else sums(this.ctx).delete(this.did)
    return sum
  }

  [Symbol.dispose](): void {
    this.#add(-this.#bytes)
  }
}
