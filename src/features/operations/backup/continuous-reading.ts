/** Reads the objects of a continuous backup. Requests segments several at a time, because each takes a request. */
import { OperatorError } from '../../../base/operator-error.ts'
import { readWhole, type Archive } from './archive.ts'
import { digestOf, openObject, segmentName, type SegmentHeader } from './continuous-format.ts'

/** Most bytes of an object: far more than the largest transaction takes. */
const MAX_OBJECT_BYTES = 1024 ** 3
/** Most segments that are requested ahead. */
const MAX_AHEAD = 16
/** Most bytes of segments to read ahead, assuming that each is as large as the last one. */
const MAX_BYTES_AHEAD = 32 * 1024 ** 2

export interface Segment {
  header: SegmentHeader
  content: Uint8Array
  digest: string
}

/** Returns null if there is no such object. Throws `OperatorError` if it is too large to be one. */
export const readObject = (archive: Archive, name: string): Promise<Uint8Array | null> =>
  readWhole(archive, name, MAX_OBJECT_BYTES)

/** Throws `OperatorError` if there is no such object. */
export async function needed(archive: Archive, name: string): Promise<Uint8Array> {
  const bytes = await readObject(archive, name)
  if (bytes === null) throw new OperatorError(`${name} is missing`)
  return bytes
}

/** Returns null if there is none. Throws `OperatorError` if it is damaged. */
export async function segmentOf(archive: Archive, key: Uint8Array, name: string): Promise<Segment | null> {
  const bytes = await readObject(archive, name)
  return bytes && { ...(await openObject(key, bytes, name, 'segment')), digest: digestOf(bytes) }
}

/** Reads the segments of a chain one after another, and requests the next ones before they are needed. */
export class SegmentReader {
  readonly #asked = new Map<number, Promise<Segment | null>>()
  /** How many consecutive segments were found. */
  #found = 0

  constructor(
    readonly archive: Archive,
    readonly key: Uint8Array,
    readonly chain: string,
  ) {}

  /** Returns null if there is none now. Throws `OperatorError` if it is damaged. */
  async read(number: number): Promise<Segment | null> {
    for (const each of this.#asked.keys()) if (each < number) this.#asked.delete(each)
    try {
      const asked = this.#asked.get(number)
      // A segment that was missing when it was requested ahead may have been stored since.
      const found = (await asked) ?? (await this.#segment(number))
      if (found === null) this.#rest()
      else this.#askAhead(number, found.content.byteLength)
      return found
    } catch (error) {
      this.#rest()
      throw error
    }
  }

  #askAhead(number: number, bytes: number): void {
    const fitting = Math.floor(MAX_BYTES_AHEAD / Math.max(1, bytes))
    // Request nothing after the first one: a segment that has just been stored is often the last.
    const ahead = Math.min(2 ** this.#found++ - 1, MAX_AHEAD, fitting)
    for (let next = number + 1; next <= number + ahead; next++) {
      if (this.#asked.has(next)) continue
      const asked = this.#segment(next)
      // The call that reads this segment gets the error.
      asked.catch(() => undefined)
      this.#asked.set(next, asked)
    }
  }

  #rest(): void {
    this.#asked.clear()
    this.#found = 0
  }

  #segment(number: number): Promise<Segment | null> {
    return segmentOf(this.archive, this.key, segmentName(this.chain, number))
  }
}
