/**
 * Periodic background passes. The runner owns the interval, the last report and the errors; a sweep is a value.
 *
 * Passes of one sweep never overlap. A pass that overruns delays the next one, and missed passes are not made up. A
 * failed pass leaves the last report as it was, and failures are counted until a pass is completed. If the clock was
 * set, a destructive sweep skips one pass, which leaves the last report as well: the operator has one interval to
 * notice and correct a wrong clock. The next pass trusts the clock, even if it has jumped again, unless it jumped by
 * more than a day. So on a machine that sleeps every night, every other pass is made.
 *
 * On a cluster, only one node at a time makes a pass of a sweep, and no node begins a regular pass if another node has
 * made one within the interval. Reports are rows, so that every node reports the same.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { HOUR_SECS, MINUTE_MILLIS } from '../../base/durations.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { ClockWatch, type ClockJumps } from './clock-watch.ts'
import type { Config } from '../configuration/config.ts'
import type { Context } from '../context.ts'
import { sweepPasses, type SweepPasses } from './sweep-passes.ts'
import type { PassUnderWay, SweepFailure, Sweeps, SweepReport, SweepState } from './sweep-state.ts'
import { inRequest } from './request-scope.ts'
import type { Millis } from '../../protocol/identifiers.ts'

/** The longest delay that a timer accepts; with a longer one it would fire at once. */
const MAX_TIMER_MILLIS = 2 ** 31 - 1
/**
 * While another node makes a pass, this node waits this long before it checks again whether it has to make one itself,
 * because the other may fail.
 */
const HELD_MILLIS = MINUTE_MILLIS
/** The same for a caller that waits for the report. */
const JOINED_MILLIS = 100
/** A pass that is under way for longer counts as stuck, unless its sweep says more. */
const MAX_PASS_SECS = 6 * HOUR_SECS

export interface Sweep {
  /** Kebab-case; unique. `holdfast sweep <name>` takes it; metrics and health use it in their own spelling. */
  name: string
  /** Fields of the report whose values are added to a metrics counter, each with the name of the counter. */
  counts?: Record<string, string>
  /** 0 switches the sweep off. */
  intervalSecs(config: Config): number
  /** Run the first pass at start instead of after one interval. */
  atStart?: boolean
  /** Deletes data by age, so it must not run with a wrong clock. */
  destructive?: boolean
  /** Returns what a pass lacks in this configuration, as the message of a refusal; null if nothing. */
  lacks?(config: Config): string | null
  /** How long a pass may take, for a sweep that goes through all blobs or accounts. */
  maxPassSecs?: number
  /** Run one pass. A long pass throws when `stopping` aborts, so a pass must be correct wherever it ends. */
  run(ctx: Context, stopping: AbortSignal): Promise<SweepReport>
}

/** Longest error message of a failed pass that is kept. */
const MAX_ERROR_CHARS = 500

/** The report of a skipped pass. */
const skippedPass: SweepReport = { skipped: 1 }

export class SweepRunner implements Sweeps {
  readonly #running = new Map<string, Promise<SweepReport | null>>()
  readonly #timers = new Map<string, Timer>()
  /** Passes of this node that have not ended. From `stuckAt` on the monotonic clock, they count as stuck. */
  readonly #underWay = new Map<string, { since: Millis; stuckAt: number }>()
  readonly #tallies = new Map<string, (by: number) => void>()
  readonly #passes: SweepPasses
  readonly #clockWatch: ClockWatch
  /** The jumps of the clock that each sweep has taken into account, and whether it has skipped its last pass. */
  readonly #heeded = new Map<string, ClockJumps & { hasSkipped: boolean }>()
  readonly #stopping = new AbortController()

  constructor(
    readonly ctx: Context,
    readonly sweeps: readonly Sweep[],
  ) {
    this.#clockWatch = new ClockWatch(ctx.db, ctx.clock)
    this.#passes = sweepPasses(ctx, this.#stopping.signal)
    for (const { name, counts = {} } of sweeps) {
      for (const [field, counter] of Object.entries(counts))
        this.#tallies.set(counter, ctx.metrics.tally(counter, `Sum of "${field}" in the reports of the ${name} sweep`))
      ctx.metrics.gauge(
        `${name.replaceAll('-', '_')}_last_run_timestamp`,
        `Completion time of the last pass of the ${name} sweep, in Unix seconds`,
        async () => {
          const last = await this.#passes.last(name)
          return last ? Math.floor(last.completedAt / 1000) : null
        },
      )
    }
    ctx.metrics.gauges(
      'sweep_failures',
      'Passes of a sweep that have failed since the last completed one',
      'sweep',
      async () => {
        const failures = await this.failures()
        return sweeps.map(({ name }): [string, number] => [name, failures.get(name)?.count ?? 0])
      },
    )
  }

  start(): void {
    for (const sweep of this.sweeps) {
      if (sweep.intervalSecs(this.ctx.config) === 0) continue
      if (sweep.atStart) void this.#tick(sweep, true)
      else this.#schedule(sweep)
    }
  }

  lastPasses(): Promise<ReadonlyMap<string, SweepState>> {
    return this.#passes.all()
  }

  failures(): Promise<ReadonlyMap<string, SweepFailure>> {
    return this.#passes.failures()
  }

  underWay(): readonly PassUnderWay[] {
    const now = this.ctx.clock.monotonic()
    return Array.from(this.#underWay, ([name, { since, stuckAt }]) => ({ name, since, isStuck: now > stuckAt }))
  }

  /** Run one pass now, or join the one in progress. Throws if no sweep has this name, or if it lacks something. */
  async run(name: string): Promise<SweepReport> {
    const sweep = this.sweeps.find((one) => one.name === name)
    if (!sweep) throw new Error(`there is no sweep named ${name}`)
    const lack = sweep.lacks?.(this.ctx.config) ?? null
    if (lack !== null) throw new OperatorError(lack)
    const before = this.ctx.db.cluster === null ? null : await this.#passes.last(name)
    for (;;) {
      const report = await this.#pass(sweep)
      if (report !== null) return report
      await pause(JOINED_MILLIS, undefined, { signal: this.#stopping.signal })
      const last = await this.#passes.last(name)
      if (last !== null && last.completedAt !== before?.completedAt) return last.report
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is shutting down'))
    for (const timer of this.#timers.values()) clearTimeout(timer)
    await Promise.allSettled(this.#running.values())
  }

  #schedule(sweep: Sweep, waitMillis = this.#intervalMillis(sweep)): void {
    if (this.#stopping.signal.aborted) return
    const timer = setTimeout(() => void this.#tick(sweep), Math.min(waitMillis, MAX_TIMER_MILLIS))
    timer.unref()
    this.#timers.set(sweep.name, timer)
  }

  #intervalMillis(sweep: Sweep): number {
    return sweep.intervalSecs(this.ctx.config) * 1000
  }

  async #tick(sweep: Sweep, isFirst = false): Promise<void> {
    let waitMillis = this.#intervalMillis(sweep)
    try {
      const origin = { resumed: () => this.ctx.loop.enter(`sweep ${sweep.name}`) }
      if ((await inRequest(origin, () => this.#pass(sweep, !isFirst))) === null) {
        const earlyMillis = await this.#earlyMillis(sweep)
        waitMillis = earlyMillis > 0 ? earlyMillis : Math.min(waitMillis, HELD_MILLIS)
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.ctx.log.error('sweep failed', { sweep: sweep.name, error })
    } finally {
      this.ctx.loop.leave(`sweep ${sweep.name}`)
    }
    this.#schedule(sweep, waitMillis)
  }

  /** On a cluster: time until a pass is due, because another node has made one. */
  async #earlyMillis(sweep: Sweep): Promise<number> {
    const { clock, db } = this.ctx
    if (db.cluster === null) return 0
    const last = await this.#passes.last(sweep.name)
    const sinceMillis = last === null ? Infinity : clock.now() - last.completedAt
    // A pass in the future was made by a node whose clock was ahead.
    return sinceMillis < 0 ? 0 : Math.max(0, this.#intervalMillis(sweep) - sinceMillis)
  }

  /** Returns null if another node makes a pass, or has made one so recently that no regular pass is due. */
  #pass(sweep: Sweep, isRegular = false): Promise<SweepReport | null> {
    const running = this.#running.get(sweep.name)
    if (running) return running
    const pass = this.#make(sweep, isRegular).finally(() => this.#running.delete(sweep.name))
    this.#running.set(sweep.name, pass)
    return pass
  }

  async #make(sweep: Sweep, isRegular: boolean): Promise<SweepReport | null> {
    if (isRegular && (await this.#earlyMillis(sweep)) > 0) return null
    if (sweep.destructive && (await this.#clockWasSet(sweep))) {
      this.ctx.log.warn('sweep pass skipped: the clock was set, or the server was suspended', { sweep: sweep.name })
      return skippedPass
    }
    const { name, counts = {}, maxPassSecs = MAX_PASS_SECS } = sweep
    return this.#passes.exclusively(name, async (signal) => {
      // The pass of another node may have ended in between.
      if (isRegular && (await this.#earlyMillis(sweep)) > 0) return null
      const { clock } = this.ctx
      this.#underWay.set(name, { since: clock.now(), stuckAt: clock.monotonic() + maxPassSecs * 1000 })
      const report = await sweep
        .run(this.ctx, signal)
        .catch((error: unknown) => this.#failed(name, error))
        .finally(() => this.#underWay.delete(name))
      await this.#passes.record(name, { completedAt: this.ctx.clock.now(), report })
      for (const [field, counter] of Object.entries(counts)) this.#tallies.get(counter)!(report[field] ?? 0)
      return report
    })
  }

  /** Count a failed pass, unless the server is shutting down. Throws its error. */
  async #failed(name: string, error: unknown): Promise<never> {
    const words = (error instanceof Error ? error.message : String(error)).slice(0, MAX_ERROR_CHARS)
    const failure = { since: this.ctx.clock.now(), error: words }
    if (!this.#stopping.signal.aborted)
      await this.#passes
        .fail(name, failure)
        .catch((cause: unknown) => this.ctx.log.error('could not record a failed pass', { sweep: name, error: cause }))
    throw error
  }

  /**
   * Returns whether the sweep has to skip a pass because the clock was set since its last one. Each sweep learns of a
   * jump once, whichever detected it.
   */
  async #clockWasSet({ name }: Sweep): Promise<boolean> {
    const jumps = await this.#clockWatch.jumps()
    const heeded = this.#heeded.get(name) ?? { all: 0, long: 0, hasSkipped: false }
    const skips = jumps.long > heeded.long || (jumps.all > heeded.all && !heeded.hasSkipped)
    this.#heeded.set(name, { ...jumps, hasSkipped: skips })
    return skips
  }
}
