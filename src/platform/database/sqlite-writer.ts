/**
 * The queue of transactions on SQLite, and the connection that carries them out.
 *
 * The life of a transaction, which shares its commit with others (group commit):
 * 1. `enter` queues the transaction. One turn of the event loop later, all waiting transactions run as a group inside
 *    one BEGIN … COMMIT, one after another. Most failures happen before a row is changed, and leave nothing to undo. If
 *    a member fails later, the group is rolled back and runs again with a savepoint for each member, so that only the
 *    failing one is undone.
 * 2. COMMIT writes the log without waiting for the disk. The reader is pinned to the state before the commit.
 * 3. Another thread flushes the log. In the meantime, reads see the state before the commit.
 * 4. The group is now durable: the reader moves on, `afterCommit` callbacks run, and the callers' promises resolve.
 * 5. Before the next group, the log file is extended. If the log is long, another thread copies it into the database
 *    file (a checkpoint). The next group waits for its last pages, so that the log can restart from its beginning: see
 *    `wal.ts`.
 *
 * With a gate (`CommitGate`), a group is durable once it has passed the gate, which takes long. So the next groups run
 * in the meantime: a snapshot keeps the state after each, and readers move from one to the next as groups pass.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { storageFaultOf } from '../files/storage-faults.ts'
import type { CommitBoard } from '../readers/commit-board.ts'
import { BatchLoop } from '../running/batch-loop.ts'
import { DatabaseFiles } from './database-files.ts'
import { DatabaseUnavailable, type Tx, type WriteFault } from './database.ts'
import { FRAME_BYTES, LogFollower, type CommitGate, type LogPosition } from './log-follower.ts'
import { MAX_IDLE_SNAPSHOTS, type Snapshot, type Snapshots, type SteadyReader } from './sqlite-readers.ts'
import { answered, readerOf, type Prepared } from './sqlite-statements.ts'
import { Checkpointer, FlushFailed, WriteAheadLog } from './wal.ts'

/** Most transactions in one COMMIT; the bound keeps the first of them from waiting long. */
const MAX_GROUP = 512
/** A group that runs for longer than this yields to other requests between its members. */
const TURN_MILLIS = 4
/**
 * After a member has failed with changed rows, this many groups run with savepoints from the start. Otherwise, a client
 * that knows how to cause such failures could make every group run twice. A savepoint costs as much as two statements.
 */
const CAREFUL_GROUPS = 64
/** Start a background checkpoint at this many WAL frames. */
const CHECKPOINT_FRAMES = 8000
/**
 * When no more frames than these are left to copy, writers wait for the checkpoint: the log cannot restart while they
 * add to it. That takes 2 ms, once in 800 commits; flushes of a background checkpoint delay those of commits.
 */
const LAST_FRAMES = 500
/** If a reader kept a checkpoint from copying the whole log, the next one begins after this many more frames. */
const RETRY_FRAMES = 1000
/**
 * At this many WAL frames, writers wait for each checkpoint, and new snapshots wait until a checkpoint has copied the
 * whole log.
 */
const MAX_LOG_FRAMES = 24_000
/** How long a new snapshot waits for that checkpoint. An older snapshot may prevent it for longer. */
const COPY_WAIT_MILLIS = 5000
/** Most groups that wait for the gate at once. */
const MAX_UNSETTLED = 8

interface Waiting {
  work: (tx: Tx) => Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface LogState {
  log: number
  checkpointed: number
}

interface Member {
  waiting: Waiting
  outcome: Outcome
}

type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

export class WriterQueue {
  readonly #waiting: Waiting[] = []
  // Waiting one turn of the event loop lets the requests of one tick share a commit.
  readonly #groups = new BatchLoop(() => this.#nextGroup(), { gathering: nextTurn })
  #flushing: Promise<void> | null = null
  /** The work that runs has asked for a turn of the event loop. */
  #isTurning = false
  /** Callbacks of the present group, called once it is durable. */
  #afterCommit: (() => void)[] = []
  readonly #tx: Tx
  /** How many of the next groups have savepoints. */
  #carefulGroups = 0
  readonly files: DatabaseFiles
  readonly log: WriteAheadLog
  readonly #checkpointer: Checkpointer
  /** Reads the log for copies that follow the database; null if there are none. */
  follower: LogFollower | null = null
  /** Where commits are noted for reader threads; null if there are no such threads. */
  board: CommitBoard | null = null
  #atRest: ((frames: number) => void)[] = []
  fault: WriteFault | null = null
  /** Identifies the state that a new connection sees. Every commit changes it. */
  version = 0
  /** The newest state that has passed the gate, which readers see; null without a gate. */
  shown: Snapshot | null = null
  /** One promise for each group that waits for the gate, oldest first. None rejects. */
  readonly #unsettled: Promise<void>[] = []
  /** Transactions that have failed, possibly because of a commit that is still waiting for the gate. */
  readonly #failing = new Set<Waiting>()
  /** Why no commit can be acknowledged any more. `refusal` is the error for changes that begin later. */
  #end: { error: unknown; refusal: unknown } | null = null
  #isClosed = false
  #isLogLong = false
  #isLogFull = false
  /** Callbacks that begin the snapshots waiting until the log has been copied. */
  readonly #beginnings = new Set<() => void>()
  /** How many frames the present checkpoint, or the last one, copies unless a reader still needs an earlier state. */
  #framesToCopy = 0
  /** Number of frames in the log at which the next checkpoint begins. */
  #nextCheckpoint = 0

  constructor(
    readonly writer: Prepared,
    readonly reader: SteadyReader,
    readonly snapshots: Snapshots,
    readonly path: string,
    readonly strict: boolean,
  ) {
    this.files = new DatabaseFiles(path)
    this.log = new WriteAheadLog(path)
    this.#checkpointer = new Checkpointer(path)
    this.#tx = {
      ...readerOf(() => writer),
      run: (query) => answered(() => writer.run(query)),
      afterCommit: (act) => void this.#afterCommit.push(act),
      turn: () => this.#turn(),
      known: new Map(),
    }
  }

  enter<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const refusal = this.follower?.gate?.refusal?.error ?? this.#end?.refusal
    if (refusal) return Promise.reject(refusal as Error)
    if (this.#isClosed) return Promise.reject(new DatabaseUnavailable('the database is closed'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject })
    this.#groups.wake()
    return promise
  }

  async #turn(): Promise<void> {
    this.#isTurning = true
    await nextTurn()
    this.#isTurning = false
  }

  /** Run `work` between groups, with the number of committed frames in the log. */
  async atRest<T>(work: (frames: number) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const act = (frames: number) => {
      try {
        resolve(work(frames))
      } catch (error) {
        reject(error)
      }
    }
    this.#atRest.push(act)
    await this.enter(async () => {}).catch((error: unknown) => {
      const index = this.#atRest.indexOf(act)
      // If the callback is no longer in the list, it has already run, after an earlier group.
      if (index < 0) return
      this.#atRest.splice(index, 1)
      throw error
    })
    return promise
  }

  follow(frames: number, position: LogPosition | null): LogFollower | null {
    const follower = new LogFollower(this.files)
    try {
      if (position === null) follower.rewind(frames)
      else if (!follower.resume(position, frames)) return null
      this.unfollow()
      return (this.follower = follower)
    } finally {
      if (this.follower !== follower) follower.close()
    }
  }

  unfollow(): void {
    this.follower?.close()
    this.follower = null
  }

  /** Waits until every commit is on the disk. */
  async durable(): Promise<void> {
    while (this.#flushing) await this.#flushing
  }

  /**
   * Begins a snapshot of the newest state that readers see. While the log is full, this first waits until all of it has
   * been copied: the snapshot then reads the database file only, and the log can restart. Without this wait,
   * overlapping snapshots would let the log grow until the last of them ended.
   */
  async beginSnapshot(): Promise<Snapshot> {
    const begun = this.#isLogFull && this.shown === null ? await this.#onceCopied() : null
    if (begun !== null) return begun
    if (this.shown === null) await this.durable()
    return this.#enterSnapshot()
  }

  /** Without a gate, call it only while no commit is being flushed. */
  #enterSnapshot(): Snapshot {
    // After a failed commit, the newest state is not the one that readers see.
    if (this.shown === null && this.#end !== null) throw this.#end.refusal
    if (this.shown === null) return this.snapshots.enter(this.version)
    this.shown.users++
    return this.shown
  }

  /** Returns a snapshot that was begun between two groups; null if copying the log takes too long. */
  async #onceCopied(): Promise<Snapshot | null> {
    const { promise, resolve } = Promise.withResolvers<Snapshot | null>()
    const begin = () => resolve(this.#enterSnapshot())
    const giveUp = () => {
      if (this.#beginnings.delete(begin)) resolve(null)
    }
    this.#beginnings.add(begin)
    const timer = setTimeout(giveUp, COPY_WAIT_MILLIS)
    // An empty commit, so that a group ends even if there are no other commits.
    this.enter(async () => {}).catch(giveUp)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Call it between groups. */
  #beginSnapshots(): void {
    for (const begin of this.#beginnings) begin()
    this.#beginnings.clear()
  }

  /** Whether there are commits that were refused because the log could not be flushed. */
  get hasUnflushed(): boolean {
    return this.#end?.error instanceof FlushFailed
  }

  /** Waits for all transactions that have been entered. */
  async rest(): Promise<void> {
    await this.#groups.idle()
    await this.#unsettled.at(-1)
    if (this.#end === null) this.showNewest()
  }

  /** Refuses new transactions, and waits for all that have been entered. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.rest()
    await this.#checkpointer.close()
  }

  async #nextGroup(): Promise<boolean> {
    while (this.#unsettled.length >= (this.follower?.gate ? MAX_UNSETTLED : 1)) await this.#unsettled[0]
    if (this.#end !== null) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#end.refusal)
      return false
    }
    if (this.#waiting.length > 0) await this.#group()
    // A failed checkpoint is repeated later; it must not block the transactions that wait.
    if (this.#end === null) await this.#keepLog().catch((error: unknown) => this.#noteFault(error))
    return this.#waiting.length > 0
  }

  /** Runs one BEGIN … COMMIT. The promises of its members resolve only after the COMMIT is durable. */
  async #group(): Promise<void> {
    const { reader, writer } = this
    const { connection } = writer
    // A reader that still uses a checkpointed log would keep the log from restarting.
    reader.renew()
    const members: Member[] = []
    /**
     * Transactions of this group that are still to run: not in `#waiting`, all of which the gate may refuse meanwhile.
     */
    const coming = this.#waiting.splice(0, MAX_GROUP)
    this.#afterCommit = []
    this.#tx.known.clear()
    try {
      writer.command('BEGIN IMMEDIATE')
      this.follower?.beforeWrites()
      const size = coming.length
      const isCareful = size > 1 && this.#carefulGroups > 0
      if (isCareful) this.#carefulGroups--
      for (let turnEndsAt = performance.now() + TURN_MILLIS; members.length < size;) {
        if (performance.now() > turnEndsAt) {
          await nextTurn()
          turnEndsAt = performance.now() + TURN_MILLIS
        }
        const waiting = coming.shift()!
        const outcome = await (isCareful ? this.#member(waiting.work) : this.#work(waiting.work))
        members.push({ waiting, outcome })
        // Some errors, like a full disk, roll back the whole transaction, including the work of earlier members.
        if (!connection.inTransaction) throw outcome.ok ? new Error('the transaction ended early') : outcome.error
        if (size === 1 && !outcome.ok) {
          if (!this.follower?.gate || isDiskFault(outcome.error)) throw outcome.error
          // Even a refusal passes the gate, like a commit without changes: it may rest on a state that is no longer the
          // newest.
          writer.command('ROLLBACK')
          writer.command('BEGIN IMMEDIATE')
          break
        }
        if (!isCareful && !outcome.ok && writer.hasChanged) {
          writer.command('ROLLBACK')
          this.#waiting.unshift(...members.map((member) => member.waiting), ...coming)
          this.#carefulGroups = CAREFUL_GROUPS
          return
        }
      }
      const gate = this.follower?.gate
      if (gate) return this.#commitBehind(gate, members)
      await this.#unsettled.at(-1)
      this.showNewest()
      await this.#commit()
    } catch (error) {
      this.#noteFault(error)
      if (connection.inTransaction) writer.command('ROLLBACK')
      if (members.length === 0) coming.shift()?.reject(error)
      this.#waiting.unshift(...coming)
      for (const { waiting } of members) this.#fail(waiting, error)
      return
    }
    this.#acknowledge(members, this.#afterCommit)
  }

  #acknowledge(members: readonly Member[], afterCommit: readonly (() => void)[]): void {
    this.writer.counters.commits++
    this.fault = null
    // Queued first, so that the callbacks run before the members continue.
    void Promise.resolve().then(() => callAll(afterCommit))
    for (const { waiting, outcome } of members) {
      if (outcome.ok) waiting.resolve(outcome.value)
      else waiting.reject(outcome.error)
    }
  }

  /**
   * Rejects once earlier groups have left the gate: the failure may be due to one of them, which is not visible yet.
   */
  #fail(waiting: Waiting, error: unknown): void {
    const before = this.#unsettled.at(-1)
    if (before === undefined) return waiting.reject(error)
    this.#failing.add(waiting)
    void before.then(() => {
      this.#failing.delete(waiting)
      waiting.reject(this.#end?.error ?? error)
    })
  }

  #noteFault(error: unknown): void {
    if (error instanceof FlushFailed) this.fault = { error: error.refusal, at: performance.now() }
    else if (isDiskFault(error)) this.fault = { error, at: performance.now() }
  }

  /** Readers see the state before the commit until the log is flushed, and for good if the flush fails. */
  async #commit(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.reader.pin()
    try {
      this.#flushing = promise
      this.version++
      this.board?.begin()
      this.writer.command('COMMIT')
      await this.log.sync()
    } catch (error) {
      // Nothing may build on a commit that could not be flushed: pending changes and all later ones are refused.
      if (error instanceof FlushFailed) this.#end = endOf(error)
      throw error
    } finally {
      if (this.#end === null) {
        this.reader.renew()
        this.reader.unpin()
        this.board?.settle()
      }
      this.#flushing = null
      resolve()
    }
  }

  /** COMMIT, and let the group wait for the gate while the next ones run. */
  #commitBehind(gate: CommitGate, members: readonly Member[]): void {
    const { board, snapshots } = this
    const afterCommit = this.#afterCommit
    snapshots.maxIdle = MAX_UNSETTLED
    this.shown ??= snapshots.enter(this.version)
    // Before the COMMIT: if no connection could be opened afterwards, a commit that was made would count as failed.
    snapshots.makeReady()
    this.version++
    const mark = board?.begin()
    const before = this.#unsettled.at(-1)
    try {
      this.writer.command('COMMIT')
    } catch (error) {
      // Nothing was committed, but the board has announced a commit, and reader threads wait for it.
      this.#queue(async () => {
        await before
        if (this.#end === null) board?.settle(mark)
      })
      throw error
    }
    const state = this.#stateMade(members)
    if (state === null) return
    const flushed = this.log.sync()
    const refuse = (error: Error) => {
      for (const { waiting } of members) waiting.reject(error)
      for (const waiting of this.#failing) waiting.reject(error)
      for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
    }
    const passed = gate.pass({ flushed, state: state.reader, refuse })
    this.#queue(async () => {
      const outcome = await passed.then(() => null, endOf)
      await before
      this.#end ??= outcome
      if (this.#end !== null) {
        // Readers stay at the last state that has passed. Only the next start shows whether this group is durable.
        snapshots.leave(state)
        this.#noteFault(this.#end.error)
        for (const { waiting } of members) waiting.reject(this.#end.error)
        return
      }
      snapshots.leave(this.shown!)
      this.shown = state
      board?.settle(mark)
      this.#acknowledge(members, afterCommit)
    })
  }

  /**
   * Returns the state after a COMMIT, once the follower has noted it. If that state cannot be read, returns null: only
   * the next start shows whether the commit is durable, and nothing may build on it.
   */
  #stateMade(members: readonly Member[]): Snapshot | null {
    try {
      const state = this.snapshots.enter(this.version)
      this.follower!.note(this.#frames())
      return state
    } catch (error) {
      this.#end ??= endOf(new FlushFailed(error))
      this.#noteFault(this.#end.error)
      for (const { waiting } of members) waiting.reject(this.#end.error)
      return null
    }
  }

  /** Adds a group to those that wait for the gate. */
  #queue(work: () => Promise<void>): void {
    const end = work().then(() => {
      void this.#unsettled.shift()
      if (this.#isLogLong && this.#unsettled.length === 0) void this.#restartLog()
    })
    this.#unsettled.push(end)
  }

  /** Without a gate, readers see the newest commit. */
  showNewest(): void {
    if (this.shown === null) return
    this.snapshots.leave(this.shown)
    this.snapshots.maxIdle = MAX_IDLE_SNAPSHOTS
    this.shown = null
  }

  /** Lets the log restart with the next commit. Everything that readers see must be in the database file by then. */
  async #restartLog(): Promise<void> {
    await this.#checkpointer.pass()
    // After a refused commit, the newest state is not the one that readers see.
    if (this.shown === null || this.#end !== null || this.#unsettled.length > 0) return
    this.shown = this.snapshots.renew(this.shown)
    this.board?.renewReaders()
  }

  /** The number of committed frames in the log. */
  #frames(): number {
    return this.#logState().log
  }

  /** Committed frames in the log, and how many of them checkpoints have copied. */
  #logState(): LogState {
    return this.writer.connection.query<LogState, []>('PRAGMA wal_checkpoint(NOOP)').get()!
  }

  /** Have most of the log copied into the file of the database. */
  async shorten(): Promise<void> {
    await this.#checkpointer.pass()
  }

  async #keepLog(): Promise<void> {
    const state = this.#logState()
    const { log: frames } = state
    this.follower?.note(frames)
    if (this.#atRest.length > 0) {
      await this.#unsettled.at(-1)
      for (const work of this.#atRest.splice(0)) work(frames)
    }
    this.log.makeRoom(frames * FRAME_BYTES)
    this.#isLogLong = frames >= CHECKPOINT_FRAMES
    this.#isLogFull = frames >= MAX_LOG_FRAMES
    if (!this.#isLogFull) this.#beginSnapshots()
    if (!this.#isLogLong) {
      this.#nextCheckpoint = this.#framesToCopy = 0
      return
    }
    if (this.shown !== null) {
      // While the log is not full, `#queue` restarts it, once no group waits for the gate.
      if (frames < MAX_LOG_FRAMES) return
      await this.#unsettled.at(-1)
      await this.#restartLog()
      return this.board?.renewed()
    }
    return this.#shortenLog(state)
  }

  /** Has most of a long log copied while writers keep writing, and the last frames while they wait. */
  async #shortenLog({ log: frames, checkpointed }: LogState): Promise<void> {
    const { board } = this
    const { isRunning } = this.#checkpointer
    if (!isRunning && checkpointed < this.#framesToCopy) {
      this.#nextCheckpoint = frames + RETRY_FRAMES
      this.#framesToCopy = 0
    }
    const isFull = frames >= MAX_LOG_FRAMES
    if (frames < this.#nextCheckpoint && !isFull) return
    if (!isRunning) this.#framesToCopy = frames
    const pass = this.#checkpointer.pass()
    if (board !== null && !isRunning) void pass.then(() => this.#renewReaders(board))
    if (frames - checkpointed > LAST_FRAMES && !isFull) return
    if (!(await pass)) this.writer.command('PRAGMA wal_checkpoint(PASSIVE)')
    if (this.#isLogFull && this.#beginnings.size > 0) {
      const copied = this.#logState()
      if (copied.checkpointed === copied.log) this.#beginSnapshots()
    }
    await board?.renewed()
  }

  /** Makes reader threads start over, unless the newest commit is not on the disk, and perhaps never will be. */
  #renewReaders(board: CommitBoard): void {
    if (this.#flushing === null && this.#end === null) board.renewReaders()
  }

  /** Runs a member in a savepoint: its failure undoes only its own changes. */
  async #member(work: Waiting['work']): Promise<Outcome> {
    const { writer } = this
    writer.command('SAVEPOINT member')
    const outcome = await this.#work(work)
    if (!writer.connection.inTransaction) return outcome
    if (!outcome.ok) writer.command('ROLLBACK TO member')
    writer.command('RELEASE member')
    return outcome
  }

  async #work(work: Waiting['work']): Promise<Outcome> {
    if (this.strict) await this.#rehearse(work)
    return this.#attempt(work)
  }

  /** Runs the work and rolls it back. The outcome is ignored: the second run must have the same one. */
  async #rehearse(work: Waiting['work']): Promise<void> {
    const { writer } = this
    const counted = { ...writer.counters }
    const others = this.#afterCommit.length
    writer.command('SAVEPOINT rehearsal')
    await this.#attempt(work)
    this.#afterCommit.length = others
    this.#tx.known.clear()
    Object.assign(writer.counters, counted)
    if (!writer.connection.inTransaction) return
    writer.command('ROLLBACK TO rehearsal')
    writer.command('RELEASE rehearsal')
  }

  async #attempt(work: Waiting['work']): Promise<Outcome> {
    this.writer.counters.transactions++
    this.writer.hasChanged = false
    const others = this.#afterCommit.length
    try {
      return {
        ok: true,
        value: await (this.strict ? withoutWaiting(work(this.#tx), () => this.#isTurning) : work(this.#tx)),
      }
    } catch (error) {
      this.#afterCommit.length = others
      this.#tx.known.clear()
      return { ok: false, error }
    }
  }
}

const endOf = (error: unknown) => ({ error, refusal: error instanceof FlushFailed ? error.refusal : error })

/** Calls all of them. An error in one becomes an unhandled rejection, which ends neither the others nor the process. */
function callAll(acts: readonly (() => void)[]): void {
  for (const act of acts) {
    try {
      act()
    } catch (error) {
      void Promise.reject(error as Error)
    }
  }
}

/** Whether an error comes from the disk or the database file, not from the statement. */
export const isDiskFault = (error: unknown): boolean =>
  storageFaultOf(error) !== null || /^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown } | null)?.code))

/** Rejects if `work` awaits anything but the database. Other work settles within the turns that it asks for. */
export function withoutWaiting<T>(work: Promise<T>, isTurning = () => false): Promise<T> {
  const { promise, reject } = Promise.withResolvers<T>()
  const look = () => {
    if (isTurning()) late = setImmediate(look)
    else reject(new Error('a transaction waited for something other than its database'))
  }
  let late = setImmediate(look)
  return Promise.race([work, promise]).finally(() => clearImmediate(late))
}
