/**
 * The gate of `backup.continuous_promise = "sync"`: a group of commits passes once the destination has its segment and
 * all before it. While the destination accepts none, writes are refused.
 */
import { SingleFlight } from '../../../base/single-flight.ts'
import { DatabaseUnavailable, OutcomeUnknown } from '../../../platform/database/database.ts'
import type { CommitGate, GatedCommit } from '../../../platform/database/log-follower.ts'
import { END_MILLIS, FIRST_PAUSE_MILLIS, type Destination } from './continuous-destination.ts'

/** How long a write waits for the destination before it and all others are refused. */
const MAX_WAIT_MILLIS = 5000
const NOT_STORED = 'the continuous backup cannot store the change at its destination'

/** A group of commits that waits for its segment or, if it changed nothing, for a check of the lease. */
interface Passing {
  number: number
  isConfirmed: boolean
  resolve(): void
  reject(error: Error): void
  refuse(error: Error): void
}

interface GateOptions {
  destination: Destination
  /** Seals the group. Returns the number of the last segment, and whether the group has that segment to itself. */
  seal(commit: GatedCommit): { number: number; isOwn: boolean }
  /** Number of the last segment that the destination is known to have with all before it; 0 if none is known. */
  sentThrough(): number
  /** Whether no other machine can have taken over by now. */
  isHeld(): boolean
  /** Reads the lease. Returns false if another machine has taken over, and nothing may be acknowledged any more. */
  isStillHeld(): Promise<boolean>
}

export class SegmentGate implements CommitGate {
  refusal: CommitGate['refusal'] = null
  /** Whether commits are acknowledged only once the destination has them. */
  isPromised = false
  /** Whether this process will never acknowledge anything again. */
  isOver = false
  isStopping = false
  /** Resolves when the last commit that was not held back is on the disk. */
  flushed: Promise<void> | undefined
  #hasStarted = false
  readonly #passing = new Set<Passing>()
  readonly #looks = new SingleFlight<null, boolean>()

  constructor(readonly options: GateOptions) {}

  /** Writes that take too long are refused from now on. */
  noteStart(): void {
    this.#hasStarted = true
  }

  /** Whether clients may wait for segments. */
  get isAwaited(): boolean {
    return this.#hasStarted || this.#passing.size > 0
  }

  async pass(commit: GatedCommit): Promise<void> {
    if (!this.isPromised) return (this.flushed = commit.flushed)
    const { destination, seal } = this.options
    const { number, isOwn } = seal(commit)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // A group with a segment of its own needs no check of the lease: storing the segment shows that no other machine
    // has taken over. An earlier segment shows nothing, because a takeover may have followed it.
    const passing = { number, isConfirmed: isOwn, resolve, reject, refuse: commit.refuse }
    this.#passing.add(passing)
    if (!isOwn) void this.#confirm(passing)
    const late = setTimeout(() => (this.isStopping ? this.giveUp() : this.refuse()), MAX_WAIT_MILLIS)
    if (this.isOver || (this.isStopping && destination.fault !== null)) this.giveUp()
    // Writes are being refused already, but this group began before.
    else if (this.refusal !== null) commit.refuse(undecided())
    try {
      await Promise.all([promise, commit.flushed])
    } finally {
      clearTimeout(late)
      this.#passing.delete(passing)
      if (this.#passing.size === 0 && !this.isOver) this.refusal = null
    }
  }

  /** Call it whenever the destination has more segments, or the lease was renewed. */
  letPass(): void {
    const { isHeld, sentThrough } = this.options
    if (!isHeld()) return
    for (const { number, isConfirmed, resolve } of this.#passing) if (isConfirmed && number <= sentThrough()) resolve()
  }

  /** Check the lease, which alone shows whether another machine has taken over since the last segment. */
  async #confirm(passing: Passing): Promise<void> {
    const { destination, isStillHeld } = this.options
    while (this.#passing.has(passing) && !destination.isEnded)
      try {
        if (!(await this.#looks.runAnew(null, isStillHeld))) return
        passing.isConfirmed = true
        return this.letPass()
      } catch (error) {
        destination.noteFault(error)
        await destination.pause(FIRST_PAUSE_MILLIS)
      }
  }

  /** Reject all pending groups, for good. Readers never see their writes. */
  giveUp(): void {
    this.isOver = true
    this.refusal ??= this.#refusalNow()
    for (const { reject } of this.#passing) reject(undecided())
  }

  /** Refuse the pending writes, and all others until the destination accepts segments again. */
  refuse(): void {
    if (this.#passing.size === 0 || !this.#hasStarted) return
    if (this.refusal === null) {
      const { log } = this.options.destination.ctx
      log.error('refusing writes: they cannot be stored at the destination of the continuous backup')
      this.refusal = this.#refusalNow()
    }
    for (const { refuse } of this.#passing) refuse(undecided())
  }

  #refusalNow(): CommitGate['refusal'] {
    return { error: new DatabaseUnavailable(NOT_STORED), at: this.options.destination.ctx.clock.monotonic() }
  }

  /** The server stops: pending groups get some time if the destination works. */
  stop(): void {
    this.isStopping = true
    if (this.#passing.size > 0)
      setTimeout(() => this.giveUp(), this.options.destination.fault === null ? END_MILLIS : 0)
  }
}

const undecided = (): OutcomeUnknown => new OutcomeUnknown(`${NOT_STORED}; the change may still take effect`)
