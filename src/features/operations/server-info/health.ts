/**
 * Health of the service: whether it can read and, above all, write.
 *
 * Health requests are public and unlimited, so they must be cheap. The database records whether its last write failed.
 * Disk and database are checked at most once per interval. A check writes only after a write has failed, to learn
 * whether writing works again.
 */
import { access, constants } from 'node:fs/promises'
import { dirname } from 'node:path'
import { perContext, type Context } from '../../../platform/context.ts'
import { blobsFolder, databaseFiles } from '../../../platform/files/data-directory.ts'
import { freeBytesOf } from '../../../platform/files/free-space.ts'
import { DatabaseUnavailable, sql } from '../../../platform/database/database.ts'
import { storageFaultOf } from '../../../platform/files/storage-faults.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { inTime, LATE } from '../../../base/in-time.ts'

/** Lifetime of a check result. Also the delay after a failed write before the next trial write. */
const LOOK_MILLIS = 5000
/** Time limit for checking disk and database. */
const TIMEOUT_MILLIS = 2000
/** Space that a transaction and its log may need. */
const MIN_FREE_BYTES = 4 * 1024 ** 2

/** A public reason: it contains no paths and no names. */
type Fault = string

class Health {
  #fault: Fault | null = null
  #lookedAt = -Infinity
  #isKnownFailing = false
  readonly #looks = new SingleFlight<null, void>()

  constructor(readonly ctx: Pick<Context, 'clock' | 'config' | 'db' | 'log'>) {}

  /** Returns the fault, or null if the service works. Runs the checks if the last result has expired. */
  async fault(): Promise<Fault | null> {
    const { clock, db } = this.ctx
    if (clock.monotonic() - this.#lookedAt >= LOOK_MILLIS) await this.#looks.run(null, () => this.#look())
    const fault =
      this.#fault ??
      (db.writeFault === null ? null : writeFaultOf(db.writeFault.error, 'the database cannot be written'))
    this.#tell(fault)
    return fault
  }

  async #look(): Promise<void> {
    const found = await inTime(this.#examine(), TIMEOUT_MILLIS)
    this.#fault = found === LATE ? 'disk or database do not respond' : found
    this.#lookedAt = this.ctx.clock.monotonic()
  }

  async #examine(): Promise<Fault | null> {
    const { clock, config, db } = this.ctx
    for (const folder of new Set([
      config.dataDir,
      blobsFolder(config.dataDir),
      ...databaseFiles(config.databaseUrl).map((path) => dirname(path)),
    ])) {
      const fault = await folderFault(folder, MIN_FREE_BYTES)
      if (fault !== null) return fault
    }
    try {
      await db.get(sql`SELECT 1`)
    } catch {
      return 'the database cannot be read'
    }
    // The result is recorded in `db.writeFault`.
    if (db.writeFault !== null && clock.monotonic() - db.writeFault.at >= LOOK_MILLIS)
      await db.retryWriting().catch(() => undefined)
    return null
  }

  /** Log each change between working and failing once. */
  #tell(fault: Fault | null): void {
    const isFailing = fault !== null
    if (isFailing === this.#isKnownFailing) return
    this.#isKnownFailing = isFailing
    if (isFailing) this.ctx.log.error('service is failing', { reason: fault, error: this.ctx.db.writeFault?.error })
    else this.ctx.log.info('service has recovered')
  }
}

/** Returns the reason why files cannot be written in a folder, or null if they can. */
export async function folderFault(folder: string, minFreeBytes: number): Promise<Fault | null> {
  try {
    if ((await freeBytesOf(folder)) < minFreeBytes) return 'the disk is full'
    await access(folder, constants.W_OK)
    return null
  } catch (error) {
    return writeFaultOf(error, 'the data directory cannot be written')
  }
}

/** A database error already says what is wrong. */
const writeFaultOf = (error: unknown, otherwise: Fault): Fault =>
  error instanceof DatabaseUnavailable ? error.message : (storageFaultOf(error) ?? otherwise)

const healthOf = perContext((ctx) => new Health(ctx))

/** Returns why the service cannot work, or null if it works. */
export const healthFault = (ctx: Context): Promise<Fault | null> => healthOf(ctx).fault()
