/**
 * Whether the service can do its work: read, and above all write.
 *
 * Strangers may ask as often as they like, so asking costs next to nothing: the database remembers how its last write
 * went, disk and reading are looked at once in a while, and something is written only while writes fail, to find out
 * whether they still do.
 */
import { access, constants, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { perContext, type Context } from '../../platform/context.ts'
import { blobsFolder, databaseFiles } from '../../platform/files/data-directory.ts'
import { sql } from '../../platform/database/database.ts'
import { SingleFlight } from '../../base/single-flight.ts'

/** How long what was found is told again. After a failed write, also how long it takes until another one is tried. */
const LOOK_MILLIS = 5000
/** How long disk and database may take to answer. */
const TIMEOUT_MILLIS = 2000
/** What a transaction and the room for the log behind it may take. */
const MIN_FREE_BYTES = 4 * 1024 ** 2

/** Told to whoever asks, so without paths and names. */
type Unwritable =
  'the disk is full' | 'the file system is read-only' | 'the data directory cannot be written' | 'the database cannot be written'
type Fault = Unwritable | 'the database cannot be read' | 'disk or database do not answer'

class Health {
  #fault: Fault | null = null
  #lookedAt = -Infinity
  #isKnownIll = false
  readonly #looks = new SingleFlight<null, void>()

  constructor(readonly ctx: Pick<Context, 'clock' | 'config' | 'db' | 'log'>) {}

  /** What is wrong, or null. */
  async fault(): Promise<Fault | null> {
    const { clock, db } = this.ctx
    if (clock.monotonic() - this.#lookedAt >= LOOK_MILLIS) await this.#looks.run(null, () => this.#look())
    const fault = this.#fault ?? (db.writeFault === null ? null : writeFaultOf(db.writeFault.error, 'the database cannot be written'))
    this.#tell(fault)
    return fault
  }

  async #look(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<Fault>()
    const timer = setTimeout(() => resolve('disk or database do not answer'), TIMEOUT_MILLIS)
    this.#fault = await Promise.race([this.#examine(), late])
    clearTimeout(timer)
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
    // The database keeps how it went.
    if (db.writeFault !== null && clock.monotonic() - db.writeFault.at >= LOOK_MILLIS)
      await db.run(sql`UPDATE clock_seen SET seen_at = seen_at`).catch(() => undefined)
    return null
  }

  /** In the log a change is told once. */
  #tell(fault: Fault | null): void {
    const isIll = fault !== null
    if (isIll === this.#isKnownIll) return
    this.#isKnownIll = isIll
    if (isIll) this.ctx.log.error('the service cannot work', { reason: fault, error: this.ctx.db.writeFault?.error })
    else this.ctx.log.info('the service works again')
  }
}

/** What keeps files from being written in a folder, or null. */
export async function folderFault(folder: string, minFreeBytes: number): Promise<Fault | null> {
  try {
    const { bavail, bsize } = await statfs(folder)
    if (bavail * bsize < minFreeBytes) return 'the disk is full'
    await access(folder, constants.W_OK)
    return null
  } catch (error) {
    return writeFaultOf(error, 'the data directory cannot be written')
  }
}

const writeFaults: readonly [RegExp, Unwritable][] = [
  [/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)/, 'the disk is full'],
  [/^(SQLITE_READONLY|EROFS)/, 'the file system is read-only'],
]

function writeFaultOf(error: unknown, otherwise: Unwritable): Unwritable {
  const code = String((error as { code?: unknown }).code)
  return writeFaults.find(([pattern]) => pattern.test(code))?.[1] ?? otherwise
}

const healthOf = perContext((ctx) => new Health(ctx))

export const healthFault = (ctx: Context): Promise<Fault | null> => healthOf(ctx).fault()
