import { HOUR_MILLIS, MINUTE_MILLIS } from './durations.ts'
import { inTime, LATE } from './in-time.ts'

/** Thrown when a source delivers nothing, or too little, for too long. */
export class Stalled extends Error {}

/** Passes on the items of a source. Throws `Stalled` if an item does not arrive within `millis` of being asked for. */
export async function* unstalled<T>(source: AsyncIterable<T>, millis: number): AsyncGenerator<T> {
  const pieces = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const piece = await inTime(pieces.next(), millis)
      if (piece === LATE) throw new Stalled(`no data for ${millis} ms`)
      if (piece.done) return
      yield piece.value
    }
  } finally {
    // Not awaited: a stalled source only ends after its next item has arrived.
    void pieces.return?.().catch(() => undefined)
  }
}

/** The pace that a source of bytes has to keep. Only time in which a reader waits for it counts. */
export interface ArrivalPace {
  /** Longest wait for the next bytes, and the time in which there have to be `leastBytes`. */
  millis: number
  leastBytes: number
  /** Longest wait in all. */
  mostMillis: number
}

/**
 * Passes on the bytes of a source. Throws `Stalled` if they arrive too slowly to ever end. Only waiting for the source
 * counts: a reader may take its time.
 */
export async function* steady(
  source: AsyncIterable<Uint8Array>,
  { millis, leastBytes, mostMillis }: ArrivalPace,
): AsyncGenerator<Uint8Array> {
  let [waited, total, bytes] = [0, 0, 0]
  let askedAt = performance.now()
  for await (const chunk of unstalled(source, millis)) {
    waited += performance.now() - askedAt
    bytes += chunk.length
    if (waited >= millis) {
      total += waited
      if (bytes < leastBytes || total >= mostMillis) throw new Stalled(`${bytes} bytes in ${waited} ms`)
      ;[waited, bytes] = [0, 0]
    }
    yield chunk
    askedAt = performance.now()
  }
}

/** For uploads, which take a place from others while they arrive: somewhat less than 9 kB/s, for six hours. */
export const uploadPace: ArrivalPace = {
  millis: MINUTE_MILLIS,
  leastBytes: 512 * 1024,
  mostMillis: 6 * HOUR_MILLIS,
}
