/**
 * Watches the event loop: while something computes or waits synchronously, every request waits. A timer notices how
 * late it fires, and requests leave marks, so that the request that took the time can be named.
 *
 * A mark costs one reading of the clock. Without marks, the timer rests, so that an idle server is not woken.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import type { Clock } from './clock.ts'
import { LogRateLimiter } from './log-rate-limiter.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

const TICK_MILLIS = 25
/** Ticks without a mark after which the timer rests. */
const MAX_IDLE_TICKS = 40
/** Shorter stalls are not counted: collecting garbage takes about as long. */
const COUNTED_MILLIS = 100
/** A stall is logged if the server computed for this long, or if it lasted this long for whatever reason. */
const LOGGED_BUSY_MILLIS = 250
const LOGGED_MILLIS = 5000
/** Length of a span. The longest recent stall is that of the present span and the one before it. */
const RECENT_MILLIS = 10 * MINUTE_MILLIS

const NANOS_PER_MILLI = 1e6

/** `computing`: on this thread. `waiting`: for the disk, or for a machine that had no time for the process. */
export type StallCause = 'computing' | 'waiting'

export interface Stall {
  durationMillis: number
  cause: StallCause
  /** The request or the work that took most of the time, by its name in metrics; null if it is not known. */
  route: string | null
  at: Millis
}

export class LoopWatch {
  #timer: ReturnType<typeof setInterval> | null = null
  #idleTicks = 0
  /** When the next tick is due, and the last mark, in nanoseconds. */
  #dueAt = 0
  #markedAt = 0
  /** What has run since the last mark; null if that is not known. */
  #route: string | null = null
  /** The longest time between two marks since the last tick, and what ran then. */
  #gap = 0
  #gapRoute: string | null = null
  #cpuMicros = 0

  #longest: Stall | null = null
  #recent = { now: 0, before: 0, turnsAt: 0 }
  readonly #lines: LogRateLimiter

  constructor(readonly parts: { clock: Clock; log: Log; metrics: Metrics }) {
    this.#lines = new LogRateLimiter(parts.clock)
    parts.metrics.gauge(
      'event_loop_longest_stall_seconds',
      'Longest stall of the event loop in the last 10 to 20 minutes',
      () => {
        this.#turn()
        return Math.max(this.#recent.now, this.#recent.before) / 1000
      },
    )
  }

  /** The longest stall since the start; null if there was none that counts. */
  get longest(): Stall | null {
    return this.#longest
  }

  /** From now on, `route` runs: a request begins, or continues after a wait. */
  enter(route: string): void {
    this.#mark(route)
  }

  /** `route` has run until now, and has ended. */
  leave(route: string): void {
    this.#route = route
    this.#mark(null)
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #mark(route: string | null): void {
    const now = Bun.nanoseconds()
    this.#idleTicks = 0
    if (this.#timer === null) this.#wake(now)
    this.#close(now)
    this.#route = route
  }

  #close(now: number): void {
    const gap = now - this.#markedAt
    if (gap > this.#gap) {
      this.#gap = gap
      this.#gapRoute = this.#route
    }
    this.#markedAt = now
  }

  #wake(now: number): void {
    this.#timer = setInterval(() => this.#tick(), TICK_MILLIS)
    this.#timer.unref()
    this.#cpuMicros = cpuMicros()
    this.#begin(now)
  }

  #begin(now: number): void {
    this.#dueAt = now + TICK_MILLIS * NANOS_PER_MILLI
    this.#markedAt = now
    this.#gap = 0
    this.#route = null
  }

  #tick(): void {
    const now = Bun.nanoseconds()
    this.#close(now)
    const lateNanos = now - this.#dueAt
    const busyMicros = cpuMicros() - this.#cpuMicros
    this.#cpuMicros += busyMicros
    if (lateNanos >= COUNTED_MILLIS * NANOS_PER_MILLI) this.#note(lateNanos, busyMicros * 1000)
    this.#begin(now)
    if (++this.#idleTicks > MAX_IDLE_TICKS) this.stop()
  }

  #note(lateNanos: number, busyNanos: number): void {
    const { clock, log, metrics } = this.parts
    const stall: Stall = {
      durationMillis: Math.round(lateNanos / NANOS_PER_MILLI),
      cause: busyNanos >= lateNanos / 2 ? 'computing' : 'waiting',
      route: this.#gap >= lateNanos / 2 ? this.#gapRoute : null,
      at: clock.now(),
    }
    const { durationMillis, cause, route } = stall
    metrics.count('event_loop_stalls_total', { cause })
    this.#turn()
    this.#recent.now = Math.max(this.#recent.now, durationMillis)
    if (durationMillis > (this.#longest?.durationMillis ?? 0)) this.#longest = stall
    if (busyNanos < LOGGED_BUSY_MILLIS * NANOS_PER_MILLI && durationMillis < LOGGED_MILLIS) return
    this.#lines.within(route ?? '', (omitted) =>
      log.warn('event loop stalled', { route, durationMillis, reason: cause, omitted }),
    )
  }

  /** Begin the next span if the present one has ended. */
  #turn(): void {
    const now = this.parts.clock.monotonic()
    if (now < this.#recent.turnsAt) return
    const isNext = now < this.#recent.turnsAt + RECENT_MILLIS
    this.#recent = { now: 0, before: isNext ? this.#recent.now : 0, turnsAt: now + RECENT_MILLIS }
  }
}

function cpuMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
