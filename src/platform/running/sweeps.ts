/**
 * Periodic background passes. The runner owns the interval, the last report and the errors; a sweep is a value.
 *
 * Passes of one sweep never overlap. A pass that overruns delays the next one, and missed passes are not made up. A
 * failed pass leaves the last report as it was: a stale timestamp is the alarm. If the clock was set, a destructive
 * sweep skips one pass and leaves its report too, so the operator has one interval to notice and correct a wrong clock.
 * The next pass trusts the clock.
 */
import { ClockWatch } from './clock-watch.ts'
import type { Config } from '../configuration/config.ts'
import type { Context } from '../context.ts'
import type { Sweeps, SweepReport, SweepState } from './sweep-state.ts'

/** The longest delay that a timer accepts; with a longer one it would fire at once. */
const MAX_TIMER_MILLIS = 2 ** 31 - 1

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
  /** Run one pass. A long pass throws when `stopping` aborts, so a pass must be correct wherever it ends. */
  run(ctx: Context, stopping: AbortSignal): Promise<SweepReport>
}

/** The report of a skipped pass. */
const skippedPass: SweepReport = { skipped: 1 }

export class SweepRunner implements Sweeps {
  readonly #running = new Map<string, Promise<SweepReport>>()
  readonly #timers = new Map<string, Timer>()
  readonly #tallies = new Map<string, (by: number) => void>()
  readonly last = new Map<string, SweepState>()
  readonly #clockWatch: ClockWatch
  /** How many jumps of the clock each sweep has taken into account. */
  readonly #heeded = new Map<string, number>()
  readonly #stopping = new AbortController()

  constructor(
    readonly ctx: Context,
    readonly sweeps: readonly Sweep[],
  ) {
    this.#clockWatch = new ClockWatch(ctx.db, ctx.clock)
    for (const { name, counts = {} } of sweeps) {
      for (const [field, counter] of Object.entries(counts))
        this.#tallies.set(counter, ctx.metrics.tally(counter, `Sum of "${field}" in the reports of the ${name} sweep`))
      ctx.metrics.gauge(
        `${name.replaceAll('-', '_')}_last_run_timestamp`,
        `Completion time of the last pass of the ${name} sweep, in Unix seconds`,
        () => {
          const last = this.last.get(name)
          return last ? Math.floor(last.completedAt / 1000) : null
        },
      )
    }
  }

  start(): void {
    for (const sweep of this.sweeps) {
      if (sweep.intervalSecs(this.ctx.config) === 0) continue
      if (sweep.atStart) void this.#tick(sweep)
      else this.#schedule(sweep)
    }
  }

  /** Run one pass now, or join the one in progress. Throws if no sweep has this name. */
  run(name: string): Promise<SweepReport> {
    const sweep = this.sweeps.find((one) => one.name === name)
    if (!sweep) throw new Error(`there is no sweep named ${name}`)
    return this.#pass(sweep)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is shutting down'))
    for (const timer of this.#timers.values()) clearTimeout(timer)
    await Promise.allSettled(this.#running.values())
  }

  #schedule(sweep: Sweep): void {
    if (this.#stopping.signal.aborted) return
    const timer = setTimeout(() => void this.#tick(sweep), Math.min(sweep.intervalSecs(this.ctx.config) * 1000, MAX_TIMER_MILLIS))
    timer.unref()
    this.#timers.set(sweep.name, timer)
  }

  async #tick(sweep: Sweep): Promise<void> {
    try {
      await this.#pass(sweep)
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.ctx.log.error('sweep failed', { sweep: sweep.name, error })
    }
    this.#schedule(sweep)
  }

  #pass(sweep: Sweep): Promise<SweepReport> {
    const running = this.#running.get(sweep.name)
    if (running) return running
    const pass = this.#make(sweep).finally(() => this.#running.delete(sweep.name))
    this.#running.set(sweep.name, pass)
    return pass
  }

  async #make(sweep: Sweep): Promise<SweepReport> {
    if (sweep.destructive && (await this.#clockWasSet(sweep))) {
      this.ctx.log.warn('sweep skipped a pass: the clock was set, or this server was stopped for long', { sweep: sweep.name })
      return skippedPass
    }
    const report = await sweep.run(this.ctx, this.#stopping.signal)
    this.last.set(sweep.name, { completedAt: this.ctx.clock.now(), report })
    for (const [field, counter] of Object.entries(sweep.counts ?? {})) this.#tallies.get(counter)!(report[field] ?? 0)
    return report
  }

  /** Returns whether the clock was set since the sweep's last pass. Each sweep learns of a jump once, whichever detected it. */
  async #clockWasSet({ name }: Sweep): Promise<boolean> {
    const jumps = await this.#clockWatch.jumps()
    const heeded = this.#heeded.get(name) ?? 0
    this.#heeded.set(name, jumps)
    return jumps > heeded
  }
}
