/**
 * Reads a backup whose destination fails now and then. A restore reads for hours, and must not end with the first
 * broken connection: reads resume where the connection broke.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { BucketRefusal } from '../../../platform/network/bucket-faults.ts'
import { archiveAt, type Archive } from './archive.ts'

/** How long a destination may fail to deliver a single byte. */
const MAX_OUTAGE_MILLIS = 10 * MINUTE_MILLIS
const FIRST_PAUSE_MILLIS = 100
const MAX_PAUSE_MILLIS = 30_000

/** Error codes of file reads while a network or a disk is in trouble. */
const passingCodes: ReadonlySet<string | undefined> = new Set([
  'EIO',
  'ESTALE',
  'ETIMEDOUT',
  'ENOTCONN',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'EREMOTEIO',
])

export interface Patience {
  /** Called once at the start of each outage. */
  tell(message: string): void
  /** Ten minutes if omitted. */
  maxOutageMillis?: number
}

/** As `archiveAt`; with patience, reads resume after an outage. */
export function openArchive(...[place, config, patience]: [...Parameters<typeof archiveAt>, Patience?]): Archive {
  const archive = archiveAt(place, config)
  return patience === undefined ? archive : patiently(archive, patience)
}

/**
 * Returns the archive with reads that survive outages. A read throws `OperatorError` once the destination has failed
 * for too long, and throws at once if a retry cannot help. Until the destination has answered once, nothing is retried:
 * its name may be wrong.
 */
export function patiently(archive: Archive, patience: Patience): Archive {
  let hasAnswered = false
  return {
    ...archive,
    async read(name, from = 0) {
      const outage = new Outage(name, patience)
      const begin = () => archive.read(name, from)
      const content = await (hasAnswered ? outage.survive(begin) : begin())
      hasAnswered = true
      return content && readOn(archive, { name, from }, content, outage)
    },
  }
}

async function* readOn(
  archive: Archive,
  { name, from }: { name: string; from: number },
  begun: AsyncIterable<Uint8Array>,
  outage: Outage,
): AsyncGenerator<Uint8Array> {
  let content: AsyncIterable<Uint8Array> | null = begun
  let done = from
  while (content !== null) {
    try {
      for await (const chunk of content) {
        outage.over()
        done += chunk.byteLength
        yield chunk
      }
      return
    } catch (error) {
      await outage.wait(error)
    }
    content = await outage.survive(() => archive.read(name, done))
  }
  throw new OperatorError(`${name} was deleted while it was being read`)
}

/** How long reads of one object have been failing. */
class Outage {
  #since: number | null = null
  #pauseMillis = FIRST_PAUSE_MILLIS

  constructor(
    readonly name: string,
    readonly patience: Patience,
  ) {}

  over(): void {
    this.#since = null
    this.#pauseMillis = FIRST_PAUSE_MILLIS
  }

  /** Wait until the next attempt. Throws if there is to be none. */
  async wait(error: unknown): Promise<void> {
    if (!isPassing(error)) throw error
    const { tell, maxOutageMillis = MAX_OUTAGE_MILLIS } = this.patience
    const { message } = error as Error
    const now = performance.now()
    if (this.#since === null) tell(`${this.name} cannot be read for now (${message}): trying again`)
    this.#since ??= now
    if (now - this.#since >= maxOutageMillis)
      throw new OperatorError(
        `${this.name} could not be read for ${Math.round(maxOutageMillis / MINUTE_MILLIS)} minutes (${message}). Once it can be, run the same command again, which fetches what is still missing`,
        { cause: error },
      )
    await sleep(this.#pauseMillis)
    this.#pauseMillis = Math.min(2 * this.#pauseMillis, MAX_PAUSE_MILLIS)
  }

  async survive<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        await this.wait(error)
      }
    }
  }
}

/** Whether a retry may succeed. Errors of bucket requests count as temporary unless the store says otherwise. */
function isPassing(error: unknown): boolean {
  if (error instanceof OperatorError || !(error instanceof Error)) return false
  if (error instanceof BucketRefusal) return error.isPassing
  return 'syscall' in error ? passingCodes.has((error as NodeJS.ErrnoException).code) : true
}
