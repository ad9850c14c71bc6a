/**
 * Sends committed changes to the destination of the continuous backup while the server runs.
 *
 * Commits → pages in memory (`LogFollower`) → a sealed segment in the spool, at most half of the lag later → the
 * destination. A spooled segment is sent unchanged, however often: each number has one content. If the chain cannot be
 * continued (the spool is full, the log has started over before it was read, another server has written to the chain),
 * a new chain begins, with a base.
 *
 * With `backup.continuous_promise = "sync"`, each group of commits is a segment. The segment is sent once the group is
 * on the disk, and the group is acknowledged once the destination has the segment and all before it
 * (`SegmentGate.pass`). Until then no reader sees the group. Several segments are under way at a time. Everything in
 * the database when the server starts is at the destination before the port opens. The very first base is the
 * exception: until it is complete, commits are acknowledged as with `async`. After that the chain does not break: the
 * server stops instead.
 */
import { join } from 'node:path'
import type { Context } from '../../../platform/context.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { inTime } from '../../../base/in-time.ts'
import type { LogFollowing } from '../../../platform/database/database.ts'
import type { GatedCommit, LogFollower, Pages } from '../../../platform/database/log-follower.ts'
import { sqlitePath } from '../../../platform/database/sqlite.ts'
import { headSeq } from '../../data/firehose/firehose.ts'
import { Destination, END_MILLIS, FIRST_PAUSE_MILLIS, MAX_PAUSE_MILLIS } from './continuous-destination.ts'
import { BaseRefused, ChainBroken, ChainTaken, OlderDatabase } from './continuous-faults.ts'
import { endChain, lastSegmentOf } from './continuous-fence.ts'
import {
  baseName,
  CONTINUOUS,
  digestOf,
  MAX_UNDER_WAY,
  NUMBERS_LEFT_OUT,
  parseObjectName,
  sealObject,
  segmentName,
  type SegmentHeader,
} from './continuous-format.ts'
import { SegmentGate } from './continuous-gate.ts'
import {
  adopt,
  laterState,
  nowhere,
  requireNewest,
  requireNewestOf,
  requirePlace,
  type Later,
} from './continuous-joining.ts'
import { formerHolder, isOwn, Lease, LeaseWatch, readLease, Superseded, type LeaseRecord } from './continuous-lease.ts'
import { newestInstant } from './continuous-restoring.ts'
import { dropUnneeded } from './continuous-retention.ts'
import { CONTINUOUS_FOLDER, fileMark, monotonicOf, Spool, type ChainState, type Spooled } from './continuous-spool.ts'
import type { Seal } from './sealing.ts'
import { snapshotName } from './snapshot.ts'

/** `sync`: a segment of at most this size is compressed on this thread, because a client waits for it. */
const MAX_SEALED_HERE_BYTES = 2 * 1024 ** 2
const KEY_BYTES = 32
const CHAIN_ID_BYTES = 4
/** `async`: how long a starting server waits until the lease says `async`. */
const TELLING_MILLIS = 5000
/** How long a stopping server waits for its last request, whose outcome no longer matters. */
const LAST_REQUEST_MILLIS = 500
const POLL_MILLIS = 20
/** How often a restored server checks whether its predecessor still renews the lease. */
const LOOK_MILLIS = 500
/** `sync`: the longest pause after a failure, while writes are refused. */
const MAX_SYNC_PAUSE_MILLIS = 1000
/** A longer gap between two bases counts as this many times the configured interval. */
const MAX_BASE_GAP = 2
/** `async` and `sync`: how often the server checks that the destination has the key of the chain. */
const CHECK_MILLIS = 60 * 60_000
/** How soon the server checks again after a failed check. */
const CHECK_PAUSE_MILLIS = 5 * 60_000
/** How soon another base is tried after one failed for a reason that only the operator can remove. */
const BASE_PAUSE_MILLIS = 10 * 60_000
const ANOTHER_CHAIN =
  'restarting the continuous backup with a new base: the log of the database does not continue the last segment'

/** What a segment is made of. */
interface Taken {
  number: number
  /** Number of the segment that follows. */
  next: number
  taken: Pages
  takenAt: Millis
  since: number
  /** The commit that waits for this segment; null if none does. */
  commit: GatedCommit | null
  /** Resolves when everything in the segment is on the disk. */
  flushed: Promise<void> | undefined
}

/** Progress of the continuous backup. */
export interface ContinuousState {
  /** The promise in force now: with `sync`, a commit is at the destination before it is acknowledged. */
  promise: 'async' | 'sync'
  /** Age of the oldest commit that a restore would lack, in milliseconds. 0: it would lack none. */
  lagMillis: number
  /** Size of the segments, on the disk or in memory, that the destination does not have. */
  spooledBytes: number
  /** What keeps the backup from progressing; null if nothing does. */
  fault: string | null
}

/** Resolves before the port opens. Commits are sent from then on, or once the destination has a new chain. */
export async function sendContinuously(
  ctx: Context,
  following: LogFollowing,
  place: string,
): Promise<ContinuousSending> {
  const sending = new ContinuousSending(ctx, following, place)
  await sending.begin()
  return sending
}

export class ContinuousSending {
  readonly #destination: Destination
  readonly #gate: SegmentGate
  readonly #spool: Spool
  readonly #path: string
  readonly #end = new AbortController()
  readonly #isSync: boolean
  readonly #ownRun = crypto.randomUUID()
  /** Null until it is known that this data directory may continue the chain. */
  #lease: Lease | null = null
  #renewals: Promise<void> = Promise.resolve()
  #isSuperseded = false
  /** Number of the last segment that the destination is known to have with all before it; 0 if none is known. */
  #sentThrough = 0
  #follower: LogFollower | null = null
  #state: ChainState | null = null
  /** The key of the chain. */
  #key: Uint8Array = new Uint8Array()
  /** Number of the last segment that was begun. */
  #number = 0
  /** Number of the segment that follows. */
  #next = 1
  /** Whether the next segment is the first that this process adds to another process's chain. */
  #leavesOut = false
  /** Segments are sealed one after another. */
  #sealing: Promise<void> = Promise.resolve()
  #timer: ReturnType<typeof setTimeout> | null = null
  /** The monotonic time since which there are commits that are neither at the destination nor in the spool. */
  #openSince: number | null
  /** The same for each segment that is being sealed. */
  readonly #unsealed: number[] = []
  /** The monotonic time since which there is no base to restore. */
  #baselessSince: number | null = null
  #isMakingBase = false
  /** Why the last base was refused; null if it was not. */
  #baseFault: string | null = null
  /** The monotonic time before which no base is begun. */
  #baseNotBefore = -Infinity
  /** Whether another process has written to the chain, so that this one has to end it. */
  #isTaken = false
  /** Whether the chain lacks commits that the database has. */
  #hasGap = false
  /** Whether the destination has commits that the database lacks. */
  #isOlder = false
  /** How many chains have ended since the last complete base. */
  #brokenChains = 0
  /** The monotonic time of the next check of the destination. */
  #nextCheckAt = -Infinity
  /** Why segments that should be in the spool are only in memory; null if none are. */
  #spoolFault: string | null = null
  #wake = Promise.withResolvers<void>()
  #loop: Promise<void> = Promise.resolve()
  #base: Promise<void> = Promise.resolve()

  constructor(
    readonly ctx: Context,
    readonly following: LogFollowing,
    readonly place: string,
  ) {
    const { config, clock } = ctx
    this.#isSync = config.backup.continuousPromise === 'sync'
    this.#destination = new Destination(ctx, {
      place,
      ended: this.#end.signal,
      isPromised: () => this.#gate.isPromised,
    })
    this.#gate = new SegmentGate({
      destination: this.#destination,
      seal: (commit) => {
        const before = this.#number
        this.#seal(commit)
        return { number: this.#number, isOwn: this.#number > before }
      },
      sentThrough: () => this.#sentThrough,
      isHeld: () => this.#lease?.isHeld === true,
      isStillHeld: async () => {
        const other = (await this.#lease?.otherHolder()) ?? null
        if (other !== null) this.#supersede(this.#supersededBy(other))
        return other === null
      },
    })
    this.#spool = new Spool(join(config.dataDir, CONTINUOUS_FOLDER), clock)
    this.#path = sqlitePath(config.databaseUrl)
    this.#openSince = clock.monotonic()
  }

  get state(): ContinuousState {
    const since = [this.#spool.waiting[0]?.since, this.#unsealed[0], this.#openSince, this.#baselessSince].filter(
      (each) => each !== undefined && each !== null,
    )
    const lagMillis = since.length === 0 ? 0 : Math.max(1, Math.ceil(this.ctx.clock.monotonic() - Math.min(...since)))
    const promise = this.#gate.isPromised ? 'sync' : 'async'
    return {
      promise,
      lagMillis,
      spooledBytes: this.#spool.bytes,
      fault: this.#destination.fault ?? this.#spoolFault ?? this.#baseFault,
    }
  }

  async begin(): Promise<void> {
    const state = await this.#spool.open(this.place)
    if (state !== null && (await this.#resume(state))) {
      if (state.baseAt === null) this.#makeBase()
    } else {
      if (state !== null) {
        this.ctx.log.warn(ANOTHER_CHAIN, { file: segmentName(state.chain, state.number) })
        const endedAt = monotonicOf(this.ctx.clock, state.at)
        this.#openSince = Math.min(endedAt, this.#spool.waiting[0]?.since ?? endedAt)
      }
      await this.#spool.clear()
    }
    this.#loop = this.#run()
    await (this.#isSync ? this.#keepPromise() : this.#tellPromise())
  }

  /**
   * Wait until the lease is taken, and says `async`: a machine that takes over has to know that the chain may lack
   * acknowledged writes. An unreachable destination only delays the start.
   */
  async #tellPromise(): Promise<void> {
    const { clock } = this.ctx
    const endsAt = clock.monotonic() + TELLING_MILLIS
    while (
      this.#lease === null &&
      this.#destination.fault === null &&
      !this.#end.signal.aborted &&
      clock.monotonic() < endsAt
    )
      await this.#destination.pause(POLL_MILLIS)
    if (this.#isSuperseded) throw this.following.abandoned
  }

  /** Writes that take too long are refused from now on. */
  noteStart(): void {
    this.#gate.noteStart()
  }

  /**
   * Resolves once the destination has everything. Resolves at once if there was never a base: the first one is being
   * made.
   */
  async #keepPromise(): Promise<void> {
    const isOver = () => this.#end.signal.aborted
    while (this.#lease === null && !isOver()) {
      if (this.#isSuperseded) throw this.following.abandoned
      await this.#destination.pause(POLL_MILLIS)
    }
    let isFirst = true
    if (this.#state?.baseAt == null)
      await this.#destination.untilDone(isOver, async () => {
        for await (const name of this.#destination.archive.names(CONTINUOUS)) {
          if (parseObjectName(name)?.kind !== 'base') continue
          isFirst = false
          break
        }
      })
    else isFirst = false
    if (isFirst) return
    if (this.#isOlder) throw new OlderDatabase()
    this.ctx.log.info('the port opens once the continuous backup has everything')
    while (!isOver() && (!this.#gate.isPromised || this.state.lagMillis > 0)) {
      if (this.following.abandoned !== null) throw this.following.abandoned
      this.#seal()
      await this.#destination.pause(POLL_MILLIS)
    }
    if (!isOver()) await this.#notePromise(isOver)
  }

  /** Write `sync` into the last segment and into the lease. Without both, no machine takes over by itself. */
  async #notePromise(isOver: () => boolean): Promise<void> {
    if (this.#state?.promise !== 'sync') await this.#destination.untilDone(isOver, () => this.ctx.db.retryWriting())
    const lease = this.#lease!
    if (lease.record.promise === 'sync') return
    await this.#destination.untilDone(isOver, async () => {
      if (!(await lease.renew({ promise: 'sync' }))) this.#supersede(await this.#superseded())
    })
  }

  async #resume(noted: ChainState): Promise<boolean> {
    const later = this.#isSync ? await laterState(this.#destination, this.#spool, noted) : null
    if (later !== null && (await this.#resumeAfter(later))) return true
    const follower =
      (await this.following.begin(noted.position)) ??
      (noted.closed === fileMark(this.#path) ? await this.following.begin(null) : null)
    if (follower === null) return false
    this.#isOlder = later !== null
    this.#continue(noted, follower)
    return true
  }

  /** Continue from what the destination has. Returns false if the log no longer has the position where that ends. */
  async #resumeAfter(later: Later): Promise<boolean> {
    const follower = await this.following.begin(later.state.position)
    if (follower === null) return false
    await adopt(this.#destination, this.#spool, later)
    this.#continue(later.state, follower)
    return true
  }

  /**
   * Called when another segment is stored under a number that this process has used. It may come from the previous
   * process: sent before the restart, it arrived after this process had looked. Then continue after it. Returns false
   * if that is not so, or if clients already wait for segments.
   */
  async #rejoin(): Promise<boolean> {
    if (this.#gate.isAwaited) return false
    const isOver = () => this.#end.signal.aborted
    while (!isOver() && this.#spool.waiting.some(({ state }) => state === 'under way'))
      await this.#destination.pause(POLL_MILLIS)
    const later = isOver() ? null : await laterState(this.#destination, this.#spool, this.#state!)
    if (later === null) return false
    // Let groups pass once they are flushed: `begin` waits for an empty group, which could not pass otherwise.
    this.#gate.isPromised = false
    try {
      return await this.#inOrder(() => this.#resumeAfter(later))
    } catch (error) {
      this.#destination.noteFault(error)
      return false
    } finally {
      this.#gate.isPromised = true
    }
  }

  #continue(state: ChainState, follower: LogFollower): void {
    this.#state = { ...state, closed: null }
    this.#key = Buffer.from(state.key, 'base64')
    this.#number = state.number
    this.#next = state.next
    this.#leavesOut = state.number > 0
    this.#sentThrough = this.#spool.waiting.length === 0 ? state.number : 0
    this.#gate.isPromised = this.#isSync && state.baseAt !== null
    this.#baselessSince = state.baseAt === null ? (this.#openSince ?? this.ctx.clock.monotonic()) : null
    // A commit that follows the last segment was made after that segment's instant.
    const isKnownSince = state.number > 0 && state.closed === null
    this.#openSince = isKnownSince ? monotonicOf(this.ctx.clock, state.at) : null
    this.#hasGap = false
    this.#isTaken = false
    this.#follower = follower
    follower.gate = this.#isSync ? this.#gate : null
    follower.onCommit = () => this.#soon()
    follower.onClosing = () => this.#finish()
    follower.onLastCommit = () => this.#keepLast()
    follower.onClosed = (isWhole) => this.#noteClosed(isWhole)
    this.#soon()
  }

  /** Schedule a segment of what was committed, within half of the lag. */
  #soon(): void {
    this.#openSince ??= this.ctx.clock.monotonic()
    this.#timer ??= setTimeout(() => this.#seal(), this.ctx.config.backup.continuousLagMs / 2)
  }

  /** Seal all commits so far into a segment, and put it into the spool once they are on the disk. */
  #seal(commit: GatedCommit | null = null): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const follower = this.#follower
    const state = this.#state
    if (follower === null || state === null) return
    const taken = this.#takeFrom(follower)
    const since = this.#openSince ?? this.ctx.clock.monotonic()
    if (taken instanceof Error) {
      this.#hasGap = true
      return this.#break(taken)
    }
    this.#openSince = null
    if (this.#baseFault !== null) this.#makeBase()
    if (taken === null) return
    this.#unsealed.push(since)
    const number = (this.#number = this.#next)
    const next = (this.#next = number + 1 + (this.#leavesOut ? NUMBERS_LEFT_OUT : 0))
    this.#leavesOut = false
    const takenAt = this.ctx.clock.now()
    const flushed = commit?.flushed ?? this.#gate.flushed
    // Ignore a failed flush here: the commit itself reports it.
    flushed?.catch(() => undefined)
    void this.#inOrder(async () => {
      if (this.#state === state) await this.#add(state, { number, next, taken, takenAt, since, commit, flushed })
    })
      .catch((error: unknown) => {
        if (this.#state !== state) return
        // `ChainBroken` means that the spool holds this segment, but has become too large. So there is no gap.
        if (!(error instanceof ChainBroken)) this.#hasGap = true
        if (!this.#gate.isOver) this.#break(error)
      })
      .finally(() => this.#unsealed.shift())
    if (this.#isBaseDue()) this.#makeBase()
  }

  /** Returns the pages that have changed, null if none have, or the error that keeps them from being known. */
  #takeFrom(follower: LogFollower): Pages | Error | null {
    try {
      const taken = follower.take()
      return follower.isBroken ? new ChainBroken('the write-ahead log restarted before it was read') : taken
    } catch (error) {
      return error as Error
    }
  }

  async #add(state: ChainState, { number, next, taken, takenAt, since, commit, flushed }: Taken): Promise<void> {
    const { db, config } = this.ctx
    const header: SegmentHeader = {
      kind: 'segment',
      chain: state.chain,
      number,
      previous: state.digest,
      at: Math.max(takenAt, state.at + 1),
      seq: await headSeq(commit?.state ?? db),
      databasePages: taken.databasePages,
      epoch: this.#lease?.record.epoch ?? state.epoch ?? 0,
      promise: this.#gate.isPromised ? 'sync' : 'async',
      position: taken.position,
      ...(next !== number + 1 && { next }),
      ...(this.#sentThrough > 0 && { through: this.#sentThrough }),
    }
    const sealed = await sealObject(this.#key, header, taken.pages, commit === null ? undefined : MAX_SEALED_HERE_BYTES)
    this.#follower?.giveBack(taken)
    // Never send what is not flushed here: after a power cut, another machine would have commits that this one lacks.
    await flushed
    const { at, epoch, promise } = header
    Object.assign(state, { number, next, digest: digestOf(sealed), at, epoch, promise, position: taken.position })
    state.sinceBase++
    // A commit that waits for the destination stays in the database's log until the destination has it.
    const written = commit === null ? this.#spool.add(state, sealed, since) : this.#spool.hold(state, sealed, since)
    this.#wake.resolve()
    if (written !== null) {
      const fault = await this.#noteSpooled(written)
      if (fault !== null && !this.#spool.keeps(number)) throw fault.error
    }
    if (commit !== null) return
    // The first segment of a chain holds everything in the log, and may be larger than the limit.
    if (this.#spool.bytes - sealed.byteLength > config.backup.continuousSpoolBytes)
      throw new ChainBroken('the destination is unreachable, and the spool has reached backup.continuous_spool_bytes')
  }

  /** While the spool cannot be written, segments wait in memory. Returns the error of the write, or null. */
  async #noteSpooled(written: Promise<void>): Promise<{ error: unknown } | null> {
    try {
      await written
      this.#spoolFault = null
      return null
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      if (this.#spoolFault !== text) this.ctx.log.error('the continuous backup cannot write its spool', { error })
      this.#spoolFault = text
      return { error }
    }
  }

  /** Run work on the chain after all work that was queued before it. */
  #inOrder<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#sealing.then(work)
    this.#sealing = done.then(
      () => {},
      () => {},
    )
    return done
  }

  /** End the chain. What is in the spool is sent, then another chain begins. Under `sync`, the server stops instead. */
  #break(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    if (this.#gate.isPromised) {
      this.#destination.fault = text
      this.#gate.giveUp()
      const promise = 'cannot keep backup.continuous_promise = "sync"'
      return this.following.abandon(new OperatorError(`${promise}: ${text}`, { cause: error }))
    }
    this.ctx.log.error('continuous backup interrupted; restarting it with a new base', { error })
    this.#destination.fault = text
    this.#brokenChains++
    this.#openSince ??= this.ctx.clock.monotonic()
    this.following.end()
    this.#follower = null
    this.#wake.resolve()
  }

  /** Sends the spool, and begins a chain whenever there is none. */
  async #run(): Promise<void> {
    let pauseMillis = FIRST_PAUSE_MILLIS
    while (!this.#end.signal.aborted) {
      try {
        if (this.#lease === null) await this.#take()
        else if (this.#spool.waiting.length > 0) await this.#sendWaiting()
        else if (this.#follower === null) await this.#beginChain()
        else {
          this.#wake = Promise.withResolvers()
          if (this.#spool.waiting.length === 0 && this.#follower !== null) await this.#wake.promise
        }
        pauseMillis = FIRST_PAUSE_MILLIS
      } catch (error) {
        const isFinal =
          error instanceof Superseded ||
          error instanceof OlderDatabase ||
          (this.#lease === null && error instanceof OperatorError)
        if (isFinal) return this.#supersede(error)
        if (error instanceof ChainBroken) {
          const found = await readLease(this.#destination.archive).catch(() => null)
          if (found !== null && !isOwn(found.record, this.ctx.config.dataDir))
            return this.#supersede(this.#supersededBy(found.record))
          if (this.#gate.isPromised && error instanceof ChainTaken && (await this.#rejoin())) continue
          if (this.#gate.isPromised) return this.#break(error)
          if (error instanceof ChainTaken) {
            const older = await this.#olderThanChain().catch(
              (fault: unknown) => void this.#destination.noteFault(fault),
            )
            if (older === undefined) {
              await this.#destination.pause(pauseMillis)
              continue
            }
            if (older !== null) return this.#supersede(older)
            this.#isTaken = true
          }
          this.#break(error)
          await this.#sealing
          await this.#spool.clear()
        } else {
          this.#destination.noteFault(error)
          this.#gate.refuse()
        }
        await this.#destination.pause(pauseMillis)
        pauseMillis = Math.min(2 * pauseMillis, this.#isSync ? MAX_SYNC_PAUSE_MILLIS : MAX_PAUSE_MILLIS)
      }
    }
  }

  /**
   * `async`: returns an error if another process has continued the chain with writes that this database lacks. This
   * data directory is then a copy of the one that a running server uses, so the lease goes back to that server.
   */
  async #olderThanChain(): Promise<OlderDatabase | null> {
    const lease = this.#lease!
    const { former } = lease
    // A new holder, for example after a restore, continues without those writes.
    if (former === null || this.#state === null) return null
    try {
      await requireNewestOf(this.#destination, this.#spool, this.#state)
      return null
    } catch (error) {
      if (!(error instanceof OlderDatabase)) throw error
      await lease.giveBack(former)
      return error
    }
  }

  /** Take the lease, if this data directory may continue the chain. Throws `Superseded` if it may not. */
  async #take(): Promise<void> {
    const { config, clock } = this.ctx
    const place = { config, clock, archive: this.#destination.archive }
    const former = formerHolder(config.dataDir)
    let found = await readLease(this.#destination.archive)
    if (found !== null && !isOwn(found.record, config.dataDir)) {
      if (former !== null) throw this.#supersededBy(found.record)
      // A restored server may take the lease, unless its holder still renews it.
      const watch = new LeaseWatch(clock)
      while (found !== null && found.record.ttlMillis > 0) {
        const askedAt = clock.monotonic()
        const again = await readLease(this.#destination.archive)
        if (again !== null && again.record.beat !== found.record.beat) throw this.#supersededBy(again.record)
        found = again
        if (found !== null && watch.note(found, askedAt)) break
        await this.#destination.pause(LOOK_MILLIS)
        if (this.#end.signal.aborted) return
      }
    }
    const seen = found?.record
    if (this.#state !== null && seen?.chain === this.#state.chain)
      await requirePlace(this.#destination, this.#spool, this.#state, seen.through ?? 0)
    if (seen !== undefined && this.#state !== null && seen.holder === former) {
      const { chain } = this.#state
      const newest = seen.begins ?? seen.chain
      // If the disk was reset to an earlier state, the saved state may name an earlier chain.
      if (newest !== chain)
        await this.#destination.readFormer(async (source) =>
          requireNewest(this.ctx, (await lastSegmentOf(source, newest))?.built.seq),
        )
      if (chain === newest || chain === seen.chain) await requireNewestOf(this.#destination, this.#spool, this.#state)
    }
    const own = this.#state?.chain
    const chain = (this.#isBaseless ? seen?.chain : own) ?? ''
    const through = Math.max(chain === own ? this.#sentThrough : 0, (seen?.chain === chain && seen.through) || 0)
    const lease = await Lease.take(place, found, {
      run: this.#ownRun,
      chain,
      through,
      ...(chain !== own && own !== undefined && { begins: own }),
      // Keep `async` until the destination has everything that was acknowledged under it.
      promise: this.#isSync && seen?.promise === 'sync' ? 'sync' : 'async',
      knownEpoch: this.#state?.epoch ?? 0,
    })
    if (lease === null) throw new Error('another server has changed the lease')
    this.#lease = lease
    if (lease.record.ttlMillis > 0) this.#renewals = this.#renew(lease)
  }

  async #renew(lease: Lease): Promise<void> {
    const { ttlMillis } = lease.record
    while (!this.#end.signal.aborted) {
      await this.#destination.pause(ttlMillis / 3)
      while (!this.#end.signal.aborted)
        try {
          if (!(await this.#renewOnce(lease))) return this.#supersede(await this.#superseded())
          this.#gate.letPass()
          break
        } catch (error) {
          this.#destination.noteFault(error)
          await this.#destination.pause(FIRST_PAUSE_MILLIS)
        }
    }
  }

  /** Name this process's chain once it has a base: before that, no other machine could continue it. */
  #renewOnce(lease: Lease): Promise<boolean> {
    if (this.#isBaseless) return lease.renew()
    const { chain } = this.#state!
    const through = (lease.record.chain === chain && lease.record.through) || 0
    return lease.renew({ chain, through: Math.max(this.#sentThrough, through), begins: undefined })
  }

  /** Whether nothing can be restored from this process's chain, because it has no base. */
  get #isBaseless(): boolean {
    return this.#state?.baseAt == null
  }

  #supersededBy(record: LeaseRecord): Superseded {
    return new Superseded(record, this.ctx.config.dataDir)
  }

  async #superseded(): Promise<Superseded> {
    return this.#supersededBy((await readLease(this.#destination.archive))!.record)
  }

  /** Acknowledge nothing more: another machine has taken over, or may have. */
  #supersede(error: OperatorError): void {
    this.ctx.log.error('this server may not continue the continuous backup; refusing all writes', { error })
    this.#isSuperseded = true
    this.#destination.fault = error.message
    if (this.#follower !== null) this.#follower.gate = this.#gate
    this.#gate.giveUp()
    this.following.abandon(error)
  }

  /**
   * Send the spool, several segments at a time, until it is empty. Throws `ChainBroken` at once, and any other error
   * once no segment is under way.
   */
  async #sendWaiting(): Promise<void> {
    const { waiting } = this.#spool
    const underWay = new Set<Promise<void>>()
    const broken = Promise.withResolvers<never>()
    broken.promise.catch(() => undefined)
    let fault: { error: unknown } | null = null
    for (;;) {
      const first = waiting[0]?.number ?? 0
      for (const segment of fault === null ? waiting.slice(0, MAX_UNDER_WAY) : []) {
        if (segment.state !== 'waiting' || segment.number >= first + MAX_UNDER_WAY) continue
        const sent = this.#send(segment)
          .catch((error: unknown) => {
            if (error instanceof ChainBroken) broken.reject(error)
            fault ??= { error }
          })
          .finally(() => underWay.delete(sent))
        underWay.add(sent)
      }
      if (underWay.size === 0) break
      this.#wake = Promise.withResolvers()
      await Promise.race([broken.promise, ...underWay, this.#wake.promise])
    }
    if (fault !== null) throw (fault as { error: unknown }).error
  }

  async #send(segment: Spooled): Promise<void> {
    segment.state = 'under way'
    try {
      const content = await this.#spool.read(segment)
      // Wait until the segment is in the spool: otherwise the next start would make another segment with its number.
      if (!this.#gate.isPromised) await segment.written.catch(() => undefined)
      await this.#destination.write(segmentName(this.#state!.chain, segment.number), content)
      await segment.written.catch(() => undefined)
      segment.state = 'there'
    } finally {
      if (segment.state === 'under way') segment.state = 'waiting'
    }
    // Leave the spool alone once stopped, because another process may use the folder. The next start sends these
    // segments again.
    while (!this.#end.signal.aborted && this.#spool.waiting[0]?.state === 'there') {
      this.#sentThrough = this.#spool.waiting[0].number
      const removed = this.#spool.shift(this.ctx.clock.monotonic())
      this.#gate.letPass()
      if (removed !== null) await this.#noteSpooled(removed)
    }
    if (this.#follower !== null) this.#destination.fault = null
    // Log a failed check, but do not note it as a fault: with a fault, a stopping server would not wait until the rest
    // is sent.
    void this.#check().catch((error: unknown) =>
      this.ctx.log.warn('could not check the key at the destination of the continuous backup; will retry', { error }),
    )
  }

  async #beginChain(): Promise<void> {
    const { clock } = this.ctx
    this.#seal()
    await this.#sealing
    await this.#base
    // Throws while nothing can be committed: a chain would have nothing to begin with.
    await this.following.settle()
    // Pause longer after each broken chain: if the destination is slower than the writes, chain after chain breaks, and
    // each needs a base.
    if (this.#brokenChains > 1)
      await this.#destination.pause(Math.min(FIRST_PAUSE_MILLIS * 2 ** this.#brokenChains, MAX_PAUSE_MILLIS))
    const seal = await this.#destination.seal()
    const formerInstant = await this.#endFormer()
    // A restore chooses its base by instant, so instants must rise from chain to chain even if the clock is set back.
    const begunAt = Math.max(clock.now(), formerInstant + 1)
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(CHAIN_ID_BYTES))).toString('hex')
    const chain = `${snapshotName(new Date(begunAt))}-${id}`
    const key = crypto.getRandomValues(new Uint8Array(KEY_BYTES))
    await this.#destination.storeKeys(seal, chain, key, false)
    if (this.#gate.isStopping) return this.#end.abort()
    const lease = this.#lease!
    if (!(await lease.renew({ begins: chain }))) throw await this.#superseded()
    const follower = await this.following.begin(null)
    if (follower === null) return
    this.#continue(
      {
        destination: this.place,
        chain,
        key: Buffer.from(key).toString('base64'),
        number: 0,
        next: 1,
        digest: digestOf(chain),
        at: begunAt,
        position: nowhere,
        baseAt: null,
        sinceBase: 0,
        closed: null,
      },
      follower,
    )
    this.#destination.fault = null
    this.#makeBase()
  }

  /**
   * If the lease names a chain that this process has not written alone (or, as after a restore, not at all), end that
   * chain, so that no other machine can continue it. Returns the newest instant at the destination.
   */
  async #endFormer(): Promise<Millis> {
    const { chain, epoch } = this.#lease!.record
    const known = this.#state ?? { chain: '', at: 0 }
    let endedAt = 0
    if (chain !== '' && (chain !== known.chain || this.#isTaken))
      await this.#destination.readFormer(async (source) => {
        if (!this.#isTaken) await requireNewest(this.ctx, (await lastSegmentOf(source, chain))?.built.seq)
        endedAt = (await endChain(source, chain, { epoch, now: this.ctx.clock.now() }))?.at ?? 0
      })
    return Math.max(known.at, endedAt, await newestInstant(this.#destination.archive))
  }

  /**
   * Check that the destination still has the key of the chain, without which nothing can be restored: a rule of the
   * bucket may delete what is old, and a mistake anything. If the key is missing, make a base, which stores it again.
   */
  async #check(): Promise<void> {
    const { clock } = this.ctx
    const state = this.#state
    if (state?.baseAt == null || clock.monotonic() < this.#nextCheckAt) return
    const checkedAt = clock.monotonic()
    this.#nextCheckAt = checkedAt + CHECK_PAUSE_MILLIS
    const hasKey = await this.#destination.hasKey(state.chain)
    this.#nextCheckAt = checkedAt + CHECK_MILLIS
    if (!hasKey) this.#makeBase()
  }

  /** Make a base, unless one is being made, or the last one was refused a short time ago. */
  #makeBase(): void {
    if (this.#isMakingBase || this.ctx.clock.monotonic() < this.#baseNotBefore) return
    this.#isMakingBase = true
    const follower = this.#follower
    const isOver = () => this.#follower !== follower || this.#end.signal.aborted
    const work = async () => {
      do await this.#destination.untilDone(isOver, () => this.#writeBase(isOver))
      while (!isOver() && this.#isBaseDue())
    }
    this.#base = work()
      .catch((error: unknown) => (error instanceof BaseRefused ? this.#noteRefused(error) : this.#break(error)))
      .finally(() => (this.#isMakingBase = false))
  }

  /** Keep the fault until there is a base. A later commit causes the next try. */
  #noteRefused({ message, cause }: BaseRefused): void {
    const { clock, log } = this.ctx
    if (this.#baseFault !== message) log.error('could not make a base for the continuous backup', { error: cause })
    this.#baseFault = message
    this.#baseNotBefore = clock.monotonic() + BASE_PAUSE_MILLIS
  }

  /** Throws `BaseRefused`. */
  async #sealOfBase(): Promise<Seal> {
    try {
      return await this.#destination.seal()
    } catch (error) {
      throw error instanceof OperatorError ? new BaseRefused(error.message, { cause: error }) : error
    }
  }

  /**
   * Whether the base is too old, or is followed by more segments than `async` makes in that time: a restore applies all
   * of them.
   */
  #isBaseDue(): boolean {
    const { clock, config } = this.ctx
    const { baseAt = null, sinceBase = 0 } = this.#state ?? {}
    if (baseAt === null) return false
    const millis = config.backup.continuousBaseSecs * 1000
    // If the clock was set back, `baseAt` is in the future, and so is that of every base that follows.
    const madeAt = this.#state?.baseMadeAt ?? baseAt
    return (
      Math.abs(clock.now() - madeAt) >= millis || sinceBase >= Math.ceil(millis / (config.backup.continuousLagMs / 2))
    )
  }

  async #writeBase(isOver: () => boolean): Promise<void> {
    const state = this.#state!
    // Without the seal, the pieces would be stored for nothing.
    await this.#sealOfBase()
    let previous = ''
    // Commits that are not in the file yet are in the log, and so in the next segment.
    const number = await this.following.rewind(() => {
      void this.#inOrder(() => void (previous = state.digest))
      return this.#next
    })
    this.#soon()
    const content = await this.#destination.storePieces(
      this.following.file,
      { chain: state.chain, key: this.#key, number },
      isOver,
    )
    if (isOver()) return
    // Checkpoints may have copied commits into the file while it was read.
    await this.following.settle()
    this.#seal()
    const madeAt = this.ctx.clock.now()
    const header = await this.#inOrder(() => {
      const at = Math.max(madeAt, state.at + 1)
      state.at = at
      return { kind: 'base', chain: state.chain, number, previous, complete: state.number, at } as const
    })
    while (!isOver() && (this.#spool.waiting[0]?.number ?? Infinity) <= header.complete)
      await this.#destination.pause(POLL_MILLIS)
    await this.#destination.untilDone(isOver, async () =>
      this.#destination.storeKeys(await this.#sealOfBase(), state.chain, this.#key, true),
    )
    const sealed = await sealObject(this.#key, header, Buffer.from(JSON.stringify(content)))
    await this.#destination.untilDone(isOver, () => this.#destination.write(baseName(header), sealed))
    if (isOver()) return
    state.baseAt = header.at
    state.baseMadeAt = madeAt
    state.sinceBase = 0
    // If the lease does not expire, only this renewal shows that another machine has begun a chain.
    await this.#destination.untilDone(isOver, async () => {
      if (!(await this.#renewOnce(this.#lease!))) this.#supersede(await this.#superseded())
    })
    if (isOver() || this.#isSuperseded) return
    this.#baselessSince = null
    this.#baseFault = null
    const isFirst = this.#isSync && !this.#gate.isPromised
    this.#gate.isPromised = this.#isSync
    this.#brokenChains = 0
    await this.#noteSpooled(this.#spool.save(state))
    if (isFirst) await this.#notePromise(isOver)
    await this.#destination.untilDone(isOver, async () => {
      const { clock, config, log } = this.ctx
      const { continuousKeepSecs, continuousBaseSecs } = config.backup
      const dropped = await dropUnneeded(this.#destination.archive, {
        now: clock.now(),
        keptMillis: continuousKeepSecs * 1000,
        maxGapMillis: MAX_BASE_GAP * continuousBaseSecs * 1000,
      })
      log.info('continuous backup has a new base', { report: `${baseName(header)}: ${dropped} older objects deleted` })
    })
  }

  /** Called while the server stops: send what was committed, if the destination accepts it soon. */
  async #finish(): Promise<void> {
    this.#seal()
    await this.#sealing
    const late = setTimeout(() => this.#end.abort(), END_MILLIS)
    while (!this.#end.signal.aborted && this.#destination.fault === null && this.#spool.waiting.length > 0)
      await this.#destination.pause(POLL_MILLIS)
    clearTimeout(late)
    this.#end.abort()
    this.#wake.resolve()
    const rest = Promise.all([this.#loop, this.#base, this.#renewals])
    await inTime(rest, LAST_REQUEST_MILLIS)
  }

  /** Put the last commits into the spool. They are sent after the next start. */
  async #keepLast(): Promise<void> {
    this.#seal()
    await this.#sealing
    if ((await this.#noteSpooled(this.#spool.flush())) !== null) this.#hasGap = true
  }

  /** Note that the chain has everything in the file. That holds until something changes the file. */
  #noteClosed(isWhole: boolean): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    const follower = this.#follower
    const state = this.#state
    this.#follower = null
    // After a gap, leave the saved state alone: every segment that it counts on is in the spool or stored.
    if (follower === null || state === null || this.#hasGap) return
    try {
      this.#spool.saveNow({ ...state, closed: isWhole ? fileMark(this.#path) : null })
    } catch (error) {
      // The previous state is still there.
      this.ctx.log.error('could not record where the continuous backup ended', { error })
    }
  }

  /** While a follower reads commits, closing the database ends the sending (`#finish`). */
  stop(): void {
    this.#gate.stop()
    if (this.#follower === null) this.#end.abort()
  }
}
