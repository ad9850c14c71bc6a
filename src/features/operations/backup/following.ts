/**
 * Keeps a copy of another machine's database, from its continuous backup, and takes over from that machine.
 * docs/design/second-machine.md has the states, and what each failure does.
 *
 * The copy is a file beside the database's path, and gets the database's name at the takeover. Segments replace whole
 * pages, so after a loss of power those that may not be on the disk are applied again.
 */
import { existsSync, statSync } from 'node:fs'
import { open, readFile, rename, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { CopyDatabase } from '../../../platform/database/copy-database.ts'
import { PAGE_BYTES } from '../../../platform/database/page-list.ts'
import { isDatabaseThere, sqlitePath } from '../../../platform/database/sqlite.ts'
import { databaseFiles, makeDataDirectory } from '../../../platform/files/data-directory.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { Log } from '../../../platform/running/log.ts'
import { masterKeyFile } from '../../../platform/secrets/vault.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { archiveAt, type Archive } from './archive.ts'
import { inChain, segmentName } from './continuous-format.ts'
import { createOrCompare, sealFence } from './continuous-fence.ts'
import {
  formerHolder,
  isFirstOwn,
  isOwn,
  Lease,
  LeaseWatch,
  readLease,
  type FoundLease,
  type LeaseRecord,
} from './continuous-lease.ts'
import { SegmentReader } from './continuous-reading.ts'
import { apply, build, keyOf, requireOrder, sourceOf, type Built } from './continuous-restoring.ts'
import { CONTINUOUS_FOLDER, fileMark, Spool } from './continuous-spool.ts'
import { continueSequence, placeMasterKey } from './restoring.ts'
import { unsealOf } from './sealing.ts'

/** In the data directory: the number above which the event log has to continue before the server starts. */
const LOST_FILE = 'holdfast.lost-after'
/** In the data directory: with this file, `holdfast promote` requests a takeover. */
const PROMOTE_FILE = 'holdfast.promote'
/** How old a request may be when a follower starts: one that was killed has been restarted by then. */
const MAX_REQUEST_MILLIS = 5 * MINUTE_MILLIS
const COPY_FILE = 'holdfast.following'
/** How often the copy is flushed, and the number of its last segment saved. */
const SAVE_MILLIS = 5000
const RETRY_MILLIS = 1000
/** How often the lease is read to see whether it names another chain. */
const LOOK_MILLIS = 10_000
/** The lease is read this many times within its duration. */
const LOOKS = 5
const LEFT_BEHIND = 'the other machine has begun a new chain, of which there is no complete copy yet'

interface Copy {
  chain: string
  /** The key of the chain, in base64. */
  key: string
  /** When the base of this copy was complete. */
  baseAt: Millis
  built: Built
}

/** The state that operators see. */
export interface FollowState {
  /** Time since the copy had everything at the destination; null if it never had. */
  behindMillis: number | null
  /** Instant of the last commit, at the latest; null without a copy. */
  at: Millis | null
  fault: string | null
}

export interface Followed {
  lease: Lease
  /**
   * Under `async`: the highest event number in the copy. The server continues the log above all that the former machine
   * may have sent.
   */
  lostAfter: number | null
}

/** Returns where the serving machine sends its changes. Throws `OperatorError` if none is configured. */
function followedPlace({ backup }: Config): string {
  if (backup.continuous !== null) return backup.continuous
  throw new OperatorError(
    'set backup.continuous (SERVICE_BACKUP_CONTINUOUS) to the place where the other machine sends its changes',
  )
}

/** Whether the server of this data directory may run; otherwise it has to follow another one. */
export async function mayServe(config: Config): Promise<boolean> {
  const place = followedPlace(config)
  const isThere = isDatabaseThere(sqlitePath(config.databaseUrl))
  const found = await readLease(archiveAt(place, config))
  const isOurs =
    found === null || isOwn(found.record, config.dataDir) || (isThere && isFirstOwn(found.record, config.dataDir))
  if (isOurs) {
    // Delete a request for a takeover that was made while this machine serves: it must not take effect when it next
    // follows.
    if (isThere) await rm(join(config.dataDir, PROMOTE_FILE), { force: true })
    return isThere
  }
  if (isThere && formerHolder(config.dataDir) === null)
    throw new OperatorError(
      `${sqlitePath(config.databaseUrl)} is the database of a server that was never part of this backup: move it away`,
    )
  if (isThere) await setAside(config)
  return false
}

/**
 * Continue the event log above all that relays may have seen: under `async`, the former machine may have emitted events
 * that the copy lacks.
 */
export async function continueAfterLoss(ctx: Context): Promise<void> {
  const path = join(ctx.config.dataDir, LOST_FILE)
  if (!existsSync(path)) return
  await continueSequence(ctx, Number(await readFile(path, 'utf8')))
  await rm(path)
}

/**
 * Rename the database instead of deleting it: it may have commits that the other machine never had. Keeps databases
 * that were renamed before.
 */
async function setAside({ databaseUrl }: Config): Promise<void> {
  const path = sqlitePath(databaseUrl)
  const names = (count: number) => `${path}.superseded${count === 1 ? '' : `-${count}`}`
  let count = 1
  while (existsSync(names(count))) count++
  // Rename the database's file last: as long as it is there, an interrupted call is repeated.
  for (const file of databaseFiles(databaseUrl).toReversed())
    if (existsSync(file)) await rename(file, names(count) + file.slice(path.length))
}

export class Following {
  readonly #archive: Archive
  readonly #path: string
  readonly #copyFile: string
  readonly #promoteFile: string
  readonly #watch: LeaseWatch
  readonly #ownRun = crypto.randomUUID()
  #copy: Copy | null = null
  #file: FileHandle | null = null
  #savedAt = -Infinity
  #savedNumber = -1
  #lookedAt = -Infinity
  /** When the copy was last known to have everything at the destination. */
  #completeAt: number | null = null
  /**
   * Under `async`, whether the serving machine has begun another chain. It sends everything that it commits there, and
   * no machine can follow that chain until it has a base.
   */
  #isLeftBehind = false
  /** The name of the machine that serves. */
  #serving: string | null = null
  #fault: string | null = null

  /** `reading`: the server that reads the copy meanwhile. */
  constructor(readonly ctx: { config: Config; clock: Clock; log: Log; reading?: CopyDatabase }) {
    const { config, clock } = ctx
    this.#archive = archiveAt(config.backup.continuous!, config)
    this.#path = `${sqlitePath(config.databaseUrl)}.following`
    this.#copyFile = join(config.dataDir, COPY_FILE)
    this.#promoteFile = join(config.dataDir, PROMOTE_FILE)
    this.#watch = new LeaseWatch(clock)
  }

  get state(): FollowState {
    const { clock } = this.ctx
    return {
      behindMillis: this.#completeAt === null ? null : Math.round(clock.monotonic() - this.#completeAt),
      at: this.#copy?.built.at ?? null,
      fault: this.#fault ?? (this.#isLeftBehind ? LEFT_BEHIND : null),
    }
  }

  /** The name of the machine that serves; null if it is not known. */
  get serving(): string | null {
    return this.#serving
  }

  /** Follow until this machine has taken over. Returns null if it is stopped before. */
  async run(stopping: AbortSignal): Promise<Followed | null> {
    makeDataDirectory(this.ctx.config)
    await this.#dropOldRequest()
    const { log } = this.ctx
    const pollMillis = this.ctx.config.backup.continuousLagMs
    while (!stopping.aborted) {
      try {
        const taken = await this.#turn()
        if (taken !== null) return taken
        this.#fault = null
        await pause(pollMillis, stopping)
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error)
        if (this.#fault !== text) log.warn('could not update the copy of the other machine; will retry', { error })
        this.#fault = text
        await pause(RETRY_MILLIS, stopping)
      }
    }
    this.ctx.reading?.end()
    await this.#save()
    await this.#file?.close()
    return null
  }

  /** Ask a follower in another process to take over. Throws `OperatorError` if no destination is configured. */
  static async ask(config: Config): Promise<void> {
    followedPlace(config)
    await writeFile(join(config.dataDir, PROMOTE_FILE), '', { mode: 0o600 })
  }

  /** Delete an old request: the operator made it while no follower was running, and may no longer want a takeover. */
  async #dropOldRequest(): Promise<void> {
    const { clock, log } = this.ctx
    const at = statSync(this.#promoteFile, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
    const ageMillis = clock.now() - at
    if (ageMillis <= MAX_REQUEST_MILLIS) return
    log.warn('ignored an old request for a takeover: repeat it with "holdfast promote"', {
      secs: Math.round(ageMillis / 1000),
    })
    await rm(this.#promoteFile)
  }

  /** Take over now, with an up-to-date copy. For a command, while no follower runs. */
  async promote(): Promise<Followed> {
    makeDataDirectory(this.ctx.config)
    await Following.ask(this.ctx.config)
    try {
      for (;;) {
        const taken = await this.#turn()
        if (taken !== null) return taken
        await sleep(RETRY_MILLIS)
      }
    } finally {
      // After a failure, the request must not take effect later.
      await rm(this.#promoteFile, { force: true })
      await this.#file?.close()
      this.#file = null
    }
  }

  async #turn(): Promise<Followed | null> {
    const { clock, log } = this.ctx
    if (this.#copy === null) await this.#begin()
    const completeAt = await this.#advance()
    // Segments that follow may have been deleted while this machine was away, so read the lease.
    const wasAway = this.#completeAt === null || completeAt - this.#completeAt >= LOOK_MILLIS
    if (!wasAway) this.#completeAt = completeAt
    if (clock.monotonic() - this.#savedAt >= SAVE_MILLIS) await this.#save()
    const isAsked = existsSync(this.#promoteFile)
    const found = await this.#look(isAsked, wasAway ? completeAt : null)
    if (found === null) return null
    log.warn('taking over', {
      reason: isAsked ? 'requested by "holdfast promote"' : 'the lease of the other machine has expired',
    })
    const taken = await this.#takeOver(found.lease)
    if (taken !== null) await rm(this.#promoteFile, { force: true })
    return taken
  }

  /**
   * Returns the lease to take; null if it is not to be taken now. `completeAt`: when the copy was complete, provided
   * that no segments were deleted; null if that needs no check.
   */
  async #look(isAsked: boolean, completeAt: number | null): Promise<{ lease: FoundLease | null } | null> {
    const { clock, config } = this.ctx
    const askedAt = clock.monotonic()
    const { takeoverSecs } = config.backup
    const everyMillis = takeoverSecs === 0 ? LOOK_MILLIS : (takeoverSecs * 1000) / LOOKS
    const isWaiting = completeAt === null || this.#isLeftBehind
    if (!isAsked && isWaiting && askedAt - this.#lookedAt < everyMillis) return null
    this.#lookedAt = askedAt
    const lease = await this.#readLease()
    if (lease === null) return isAsked ? { lease } : null
    const copy = this.#copy!
    const hasRunOut = this.#watch.note(lease, askedAt)
    // This machine has begun a takeover that was interrupted.
    const isBegun = isOwn(lease.record, config.dataDir)
    if (lease.record.chain === '') return null
    if (lease.record.chain !== copy.chain) {
      this.#drop()
      throw new OperatorError('the other machine has begun a new chain')
    }
    if (!(await this.#hasThrough(lease.record.through ?? 0))) return null
    this.#isLeftBehind = lease.record.begins !== undefined && lease.record.promise !== 'sync'
    if (this.#isLeftBehind) this.#noteIncomplete()
    else if (completeAt !== null) this.#noteComplete(completeAt)
    if (isAsked || isBegun) return { lease }
    if (!hasRunOut || takeoverSecs === 0) return null
    if (copy.built.promise === 'sync' && lease.record.promise !== 'async') return { lease }
    throw new OperatorError(
      'the lease of the other machine has expired, but it has acknowledged writes that are not here: "holdfast promote" takes over without them',
    )
  }

  async #readLease(): Promise<FoundLease | null> {
    const lease = await readLease(this.#archive)
    if (lease !== null) this.#serving = lease.record.name
    return lease
  }

  /** Let readers use the copy, now that it is complete. Before, it may mix pages of several states after a crash. */
  #noteComplete(completeAt: number): void {
    this.#completeAt = completeAt
    this.ctx.reading?.begin(this.#path)
  }

  #noteIncomplete(): void {
    this.#completeAt = null
    this.ctx.reading?.end()
  }

  #drop(): void {
    this.#copy = null
    this.#isLeftBehind = false
    this.#noteIncomplete()
  }

  /**
   * Whether the copy has this segment, which the lease names. If it cannot get it, the segment was deleted, which looks
   * as if it did not exist yet: drop the copy.
   */
  async #hasThrough(number: number): Promise<boolean> {
    if (number <= this.#copy!.built.number) return true
    await this.#advance()
    if (number <= this.#copy!.built.number) return true
    this.ctx.log.warn('segments that the copy lacks were deleted; making a new copy')
    this.#drop()
    await rm(this.#copyFile, { force: true })
    return false
  }

  /** Continue the copy in the data directory, or make one. */
  async #begin(): Promise<void> {
    const { config, log } = this.ctx
    await this.#file?.close()
    this.#file = null
    const chain = (await this.#readLease())?.record.chain ?? ''
    const saved = await this.#saved()
    if (saved !== null && (chain === '' || saved.chain === chain) && existsSync(this.#path)) {
      this.#file = await open(this.#path, 'r+')
      this.#copy = saved
      return
    }
    await rm(this.#copyFile, { force: true })
    const unseal = await unsealOf(this.#archive, config.backup.passphrase)
    const source = await sourceOf(this.#archive, unseal)
    const base = Array.from(source.names)
      .flatMap(([name, { bases }]) => (chain === '' || name === chain ? bases : []))
      .reduce<{ name: string; chain: string; number: number; at: Millis; kind: 'base' } | null>(
        (newest, each) => (newest === null || each.at > newest.at ? { ...each, kind: 'base' } : newest),
        null,
      )
    if (base === null) throw new OperatorError('there is no complete copy of the database at the destination yet')
    const key = await keyOf(source, base.chain)
    log.info('copying the database of the other machine', { file: base.name })
    this.#file = await open(this.#path, 'w+', 0o600)
    const built = await build(source, key, this.#file, base, Infinity)
    const masterKey = await source.part(inChain(base.chain, 'master-key'))
    if (masterKey !== null && config.signingKeyMasterKey === null)
      await placeMasterKey(masterKeyFile(config.dataDir), masterKey)
    this.#copy = { chain: base.chain, key: Buffer.from(key).toString('base64'), baseAt: base.at, built }
    await this.#save()
    log.info('following', { file: segmentName(base.chain, built.number) })
  }

  /** Null also for a partial or empty file, which earlier versions may have left after a loss of power. */
  async #saved(): Promise<Copy | null> {
    if (!existsSync(this.#copyFile)) return null
    try {
      return JSON.parse(await readFile(this.#copyFile, 'utf8')) as Copy
    } catch (error) {
      if (error instanceof SyntaxError) return null
      throw error
    }
  }

  /** Apply all segments that are there. Returns the monotonic time at which the first missing one was requested. */
  async #advance(): Promise<number> {
    const copy = this.#copy!
    const segments = new SegmentReader(this.#archive, Buffer.from(copy.key, 'base64'), copy.chain)
    for (;;) {
      const { next } = copy.built
      const askedAt = this.ctx.clock.monotonic()
      const found = await segments.read(next)
      if (found === null) return askedAt
      requireOrder(found.header, copy.built, segmentName(copy.chain, next))
      await this.#change(() => (copy.built = apply(this.#file!, found, copy.built)))
    }
  }

  async #change(work: () => void): Promise<void> {
    const { reading } = this.ctx
    if (reading === undefined) work()
    else await reading.change(work)
  }

  async #save(): Promise<void> {
    const copy = this.#copy
    if (copy === null || this.#file === null || copy.built.number === this.#savedNumber) return
    const text = JSON.stringify(copy)
    await this.#file.sync()
    await writeDurably(this.#copyFile, text)
    this.#savedAt = this.ctx.clock.monotonic()
    this.#savedNumber = copy.built.number
  }

  /** Returns null if the lease has changed meanwhile. */
  async #takeOver(former: FoundLease | null): Promise<Followed | null> {
    const { config, clock } = this.ctx
    const copy = this.#copy!
    const lease = await Lease.take({ config, clock, archive: this.#archive }, former, {
      run: this.#ownRun,
      chain: copy.chain,
      through: copy.built.number,
      // Keep the former promise until the server starts: a repeated takeover has to know it.
      ...(former?.record.promise && { promise: former.record.promise }),
      knownEpoch: copy.built.epoch,
      isTakeover: true,
    })
    if (lease === null) return null
    await this.#fence(lease.record, former?.record.promise)
    const { built } = copy
    await this.#save()
    await this.#file!.close()
    this.#file = null
    this.ctx.reading?.end()
    const lostAfter = built.promise === 'sync' ? null : built.seq
    if (lostAfter !== null) await writeDurably(join(config.dataDir, LOST_FILE), String(lostAfter))
    const path = sqlitePath(config.databaseUrl)
    for (const left of databaseFiles(config.databaseUrl)) await rm(left, { force: true })
    await rename(this.#path, path)
    await rm(this.#copyFile, { force: true })
    const spool = new Spool(join(config.dataDir, CONTINUOUS_FOLDER), clock)
    await spool.open('')
    await spool.save({
      destination: config.backup.continuous!,
      chain: copy.chain,
      key: copy.key,
      number: built.number,
      next: built.next,
      digest: built.digest,
      at: built.at,
      epoch: built.epoch,
      promise: built.promise,
      position: { salts: '', frames: 0, checksum: '' },
      baseAt: copy.baseAt,
      sinceBase: 0,
      closed: fileMark(path),
    })
    return { lease, lostAfter }
  }

  /**
   * Create the next segment of the chain, so that the former holder cannot. Applies segments that the former holder
   * created before. `promise`: what the lease of the former holder promises.
   */
  async #fence({ epoch }: LeaseRecord, promise: LeaseRecord['promise']): Promise<void> {
    const copy = this.#copy!
    const key = Buffer.from(copy.key, 'base64')
    for (;;) {
      await this.#advance()
      const { chain, built } = copy
      const databasePages = (await this.#file!.stat()).size / PAGE_BYTES
      const now = this.ctx.clock.now()
      const last = promise === 'async' ? { ...built, promise } : built
      const fence = await sealFence(key, chain, last, { epoch, databasePages, now })
      if (!(await this.#create(segmentName(chain, built.next), fence.sealed))) continue
      copy.built = fence.built
      return
    }
  }

  /** Returns false if the name has another content. */
  async #create(name: string, content: Uint8Array): Promise<boolean> {
    for (;;)
      try {
        const isOwn = await createOrCompare(this.#archive, name, content)
        if (isOwn !== null) return isOwn
      } catch (error) {
        this.ctx.log.warn('takeover delayed: could not write to the destination; will retry', { error })
        await sleep(RETRY_MILLIS)
      }
  }
}

async function writeDurably(path: string, content: string): Promise<void> {
  await writeFile(`${path}.part`, content, { mode: 0o600, flush: true })
  await rename(`${path}.part`, path)
}

async function pause(millis: number, signal: AbortSignal): Promise<void> {
  await sleep(millis, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
