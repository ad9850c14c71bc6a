/**
 * Periodic passes beside the server. The runner owns the period, the last report and the errors; a sweep is a value.
 *
 * A pass never overlaps itself, a pass that overruns delays the next, missed ticks are not made up, and a failed
 * pass leaves the last report as it was: a stale time is the alarm. So does a destructive pass that is skipped because the
 * clock was set: whoever set it wrongly has one interval to notice and to set it right. The next pass believes it.
 */
import { ClockWatch } from './clock-watch.ts'
import type { Config } from '../configuration/config.ts'
import type { Context } from '../context.ts'
import type { Sweeps, SweepReport, SweepState } from './sweep-state.ts'

/** The longest delay a timer takes; it would fire at once beyond it. */
const MAX_TIMER_MILLIS = 2 ** 31 - 1

export interface Sweep {
  /** Kebab-case; unique. Also the name in `holdfast sweep <name>`, and, in the spelling of each, in metrics and health. */
  name: string
  /** Numbers of the report that are counted for good, and the counter of each. */
  counts?: Record<string, string>
  /** 0 switches the sweep off. */
  intervalSecs(config: Config): number
  /** Run the first pass at start instead of after one interval. */
  atStart?: boolean
  /** It deletes, by the age of things, what would be missed. */
  destructive?: boolean
  /** A long pass ends early, by throwing, when `stopping` says so: nothing it does may depend on its last step. */
  run(ctx: Context, stopping: AbortSignal): Promise<SweepReport>
}

/** What a pass that is not made reports. */
const skippedPass: SweepReport = { skipped: 1 }

export class SweepRunner implements Sweeps {
  readonly #running = new Map<string, Promise<SweepReport>>()
  readonly #timers = new Map<string, Timer>()
  readonly #tallies = new Map<string, (by: number) => void>()
  readonly last = new Map<string, SweepState>()
  readonly #clockWatch: ClockWatch
  /** How many jumps of the clock a sweep has skipped a pass for. */
  readonly #heeded = new Map<string, number>()
  readonly #stopping = new AbortController()

  constructor(
    readonly ctx: Context,
    readonly sweeps: readonly Sweep[],
  ) {
    this.#clockWatch = new ClockWatch(ctx.db, ctx.clock)
    for (const { name, counts = {} } of sweeps) {
      for (const counter of Object.values(counts)) this.#tallies.set(counter, ctx.metrics.tally(counter, `Of the sweep ${name}`))
      ctx.metrics.gauge(
        `${name.replaceAll('-', '_')}_last_run_timestamp`,
        `When the last pass of ${name} was completed, in unix seconds`,
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

  /** One pass now; a pass that is under way already is joined. */
  run(name: string): Promise<SweepReport> {
    const sweep = this.sweeps.find((one) => one.name === name)
    if (!sweep) throw new Error(`there is no sweep named ${name}`)
    return this.#pass(sweep)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is going down'))
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

  /** Whether it was since the sweep's last pass. Each sweep hears of it once, whoever has looked first. */
  async #clockWasSet({ name }: Sweep): Promise<boolean> {
    const jumps = await this.#clockWatch.jumps()
    const heeded = this.#heeded.get(name) ?? 0
    this.#heeded.set(name, jumps)
    return jumps > heeded
  }
}
